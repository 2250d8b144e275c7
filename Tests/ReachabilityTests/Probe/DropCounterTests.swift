import Expectations
import Testing

@testable import Reachability

/// The counters of packets that this machine drops, after a burst of eight segments.
@Suite struct DropCounterTests {
    private typealias Counters = PacketCounters

    @Test(
        arguments: [
            // The answers of a burst were dropped, then nothing more.
            (Counters(received: 8), Counters(), .input),
            (Counters(received: 20, delivered: 12), Counters(received: 5, delivered: 5), .input),
            // Others begin with the burst, and a few late answers follow.
            (Counters(received: 32), Counters(received: 7), .input),
            (Counters(received: 8, reversePath: 8), Counters(), .reversePath),
            // Of a router, forwarded packets are not delivered.
            (Counters(received: 50, delivered: 2, forwarded: 48), Counters(), nil),
            (Counters(received: 7), Counters(), nil),
            (Counters(received: 8, delivered: 8), Counters(), nil),
            // Others send packets that are dropped all the time.
            (Counters(received: 10), Counters(received: 8), nil),
            (Counters(received: 33), Counters(), nil),
            (Counters(received: 8, reversePath: 3), Counters(), .input),
        ] as [(PacketCounters, PacketCounters, DropCount.Place?)])
    func `answers were dropped if a burst, and only it, is missing`(
        _ arrival: PacketCounters, _ rest: PacketCounters, _ place: DropCount.Place?
    ) { expectEqual(DropCounter.place(of: 8, arrival, then: rest), place) }

    @Test func `packets that are dropped in bursts of one size are not the answers to bursts of two sizes`() {
        for count in 0...60 {
            let places = DropCounter.sizes.map { DropCounter.place(of: $0, Counters(received: count), then: Counters()) }
            expectEqual(places == [.input, .input], (24...32).contains(count), "\(count)")
        }
    }

    @Test func `the files of the kernel are read by their names`() {
        let snmp = """
            Ip: Forwarding InReceives ForwDatagrams InDelivers OutRequests OutTransmits
            Ip: 1 100 3 90 70 69
            Icmp: InMsgs
            Icmp: 5

            """
        let netstat = """
            TcpExt: SyncookiesSent IPReversePathFilter
            TcpExt: 1 4
            IpExt: InNoRoutes
            IpExt: 0

            """
        expectEqual(
            Counters(snmp: Array(snmp.utf8), netstat: Array(netstat.utf8)),
            Counters(requested: 70, transmitted: 69, received: 100, delivered: 90, forwarded: 3, reversePath: 4))
        let snmp6 = """
            Ip6InReceives                   \t100
            Ip6InDelivers                   \t90
            Ip6OutForwDatagrams             \t3
            Ip6OutRequests                  \t70
            Ip6OutTransmits                 \t69

            """
        expectEqual(
            Counters(snmp6: Array(snmp6.utf8)),
            Counters(requested: 70, transmitted: 69, received: 100, delivered: 90, forwarded: 3))
    }

    @Test func `files that are missing, cut or of an earlier kernel have no counters`() {
        expectNil(Counters(snmp: [], netstat: []))
        expectNil(Counters(snmp: Array("Ip: OutRequests\n".utf8), netstat: []))
        expectNil(Counters(snmp: Array("Ip: OutRequests InReceives InDelivers ForwDatagrams\nIp: 1 2 3 4\n".utf8), netstat: []))
        expectNil(Counters(snmp6: Array("Ip6OutRequests 1\n\nIp6InReceives x y\n".utf8)))
    }

    @Test func `counters that wrap do not trap`() {
        expectEqual(Counters(received: .min).since(Counters(received: 1)).undelivered, .max)
    }
}
