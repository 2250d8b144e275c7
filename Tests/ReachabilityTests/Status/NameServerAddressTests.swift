import Expectations
import FoundationEssentials
import Testing

@testable import Reachability

@Suite struct NameServerAddressTests {
    @Test(arguments: [
        ("192.0.2.53", "192.0.2.53"), ("192.0.2.53:53", "192.0.2.53"), ("192.0.2.53:5353", "192.0.2.53:5353"),
        ("2001:db8::53", "2001:db8::53"), ("[2001:db8::53]", "2001:db8::53"), ("[2001:db8::53]:65535", "[2001:db8::53]:65535"),
        ("fe80::1%eth0", "fe80::1%eth0"), ("[fe80::1%eth0]:1", "[fe80::1%eth0]:1"), ("::ffff:192.0.2.1", "192.0.2.1"),
    ])
    func `an address with or without a port is read and written`(text: String, written: String) {
        expectEqual(NameServerAddress(text)?.description, written)
    }

    @Test(arguments: [
        "", "dns.example", "192.0.2.53:", "192.0.2.53:0", "192.0.2.53:65536", "192.0.2.53:+1", "192.0.2.53:5 ", "[192.0.2.53]:53",
        "[2001:db8::53", "[2001:db8::53]5353", "[2001:db8::53]:", "192.0.2.53%eth0", "fe80::1%", "[]:53", "224.0.0.251",
        "ff02::fb",
        "255.255.255.255", "[[::1]]:53", "2001:db8::53]:53", ":53",
    ])
    func `other texts are refused`(text: String) { expectEqual(NameServerAddress(text), nil) }

    @Test func `recordings have the port unless it is 53`() throws {
        func line(_ server: NameServerAddress) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            return String(decoding: try encoder.encode(server), as: UTF8.self)
        }
        let server = NameServerAddress(IPAddress(v4: 0xc000_0235), port: 5353)
        try expectEqual(line(server), #"{"address":"192.0.2.53","port":5353}"#)
        try expectEqual(line(NameServerAddress(server.address)), #"{"address":"192.0.2.53"}"#)
        try expectEqual(JSONDecoder().decode(NameServerAddress.self, from: Data(line(server).utf8)), server)
    }

    @Test(
        arguments: [
            ("0", 0), ("7", 7), ("0x7", 7), ("0xffffffff", .max), ("4294967295", .max), ("4294967296", nil), ("0x100000000", nil),
            ("-1", nil), ("+1", nil), ("0x+1", nil), ("", nil), ("0x", nil), ("7 ", nil), ("x", nil),
        ] as [(String, UInt32?)])
    func `a mark is a number of 32 bits`(text: String, mark: UInt32?) { expectEqual(RouteSelector.mark(parsing: text), mark) }

    @Test(
        arguments: [
            ("192.0.2.2", "192.0.2.2"), ("::ffff:192.0.2.2", "192.0.2.2"), ("fe80::1", "fe80::1"), ("0.0.0.0", nil), ("::", nil),
            ("224.0.0.1", nil), ("ff02::1", nil), ("255.255.255.255", nil), ("fe80::1%eth0", nil), ("host", nil), ("", nil),
        ] as [(String, String?)])
    func `a source address is that of a host`(text: String, address: String?) {
        expectEqual(RouteSelector.source(parsing: text)?.description, address)
    }

    @Test func `settings keep the source address and the mark apart`() {
        var settings = ProbeSettings()
        expectEqual(settings.selector, nil)
        settings.mark = 7
        settings.sourceAddress = IPAddress("::ffff:192.0.2.2")
        expectEqual(settings.sourceAddress, IPAddress("192.0.2.2"))
        expectEqual(settings.probedFamilies, [.v4])
        settings.sourceAddress = IPAddress("0.0.0.0")
        expectEqual(settings.sourceAddress, nil)
        expectEqual(settings.mark, 7)
        settings.mark = 0
        expectEqual(settings, ProbeSettings())
    }

    @Test func `queries are in one order, whatever the order of their making`() {
        let address = IPAddress(v4: 0xc000_0201)
        let selectors = [
            nil, RouteSelector(source: IPAddress("10.0.0.1")), RouteSelector(source: IPAddress("10.0.0.2")),
            RouteSelector(mark: 1), RouteSelector(source: IPAddress("10.0.0.1"), mark: 1), RouteSelector(mark: 2),
        ]
        let queries = selectors.map { RouteQuery(address, port: 443, selector: $0) }
        expectEqual(queries.reversed().sorted(by: RouteQuery.areInOrder), queries)
    }

    @Test func `a query, which every target has, is no larger for its selector`() {
        expectEqual(MemoryLayout<RouteQuery>.size, 32)
        expectEqual(MemoryLayout<IPAddress>.size, 17)
    }
}
