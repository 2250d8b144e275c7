import CLinux
import EventLoop
import Expectations
import Glibc
import NetworkLab
import Testing

@testable import Reachability

/// Probes through the real kernel, in a namespace without other sockets.
@Suite(.requiresNamespaces) struct TCPProberTests {
    private static let home = IPAddress(v4: 0x7f00_0001)

    /// Runs one attempt to its end on the calling thread. - Returns: `nil` if it takes more than 10 s.
    static func probe(_ attempt: ProbeAttempt) throws -> ProbeResult? {
        var loop = try EventLoop()
        var prober = TCPProber()
        if let result = prober.start(attempt, on: loop, now: .read()) { return result }
        let deadline = MonotonicClock.now() + 10_000_000_000
        while MonotonicClock.now() < deadline {
            for ready in loop.wait(until: deadline) {
                if let result = prober.ready(ready, on: loop, now: .read()) { return result }
            }
        }
        return nil
    }

    /// A socket that listens on a port that the kernel chooses.
    private static func listener(_ family: Int32 = AF_INET) throws -> (socket: Int32, port: UInt16) {
        let socket = Glibc.socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
        try #require(socket >= 0)
        try #require(listen(socket, 16) == 0)
        var name = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafeMutableBytes(of: &name) {
            $0.baseAddress.map { getsockname(socket, $0.assumingMemoryBound(to: sockaddr.self), &size) } ?? -1
        }
        try #require(result == 0)
        return (socket, UInt16(bigEndian: name.sin6_port))
    }

    @Test func `a probe of a listening server succeeds and leaves no connection in its accept queue or in TIME_WAIT`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            for id in 1...100 as ClosedRange<UInt64> {
                let result = try #require(try Self.probe(ProbeAttempt(id: id, address: Self.home, port: port)))
                expectEqual(result.id, id)
                expectEqual(result.errno, 0)
                expectNil(result.call)
                #expect(result.roundTripNanoseconds > 0 && result.roundTripNanoseconds < 1_000_000_000)
            }
            // The accept queue never held a connection, not even one that a reset has ended since.
            expectEqual(accept(server, nil, nil), -1)
            expectEqual(errno, EAGAIN)
            // The namespace has the heading and the listening socket only. A TIME_WAIT entry on either side would stay for a
            // minute. On a busy machine the last reset may still be on its way.
            let end = ContinuousClock.now + .seconds(30)
            while try Self.lines(of: "/proc/thread-self/net/tcp") != 2, ContinuousClock.now < end { sched_yield() }
            try expectEqual(Self.lines(of: "/proc/thread-self/net/tcp"), 2)
        }
    }

    private static func lines(of path: String) throws -> Int {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var count = 0
        while case let byte = fgetc(file), byte != EOF { count += byte == 10 ? 1 : 0 }
        return count
    }

    @Test(arguments: [
        (UInt32(250), 0, Int64?(250_000)), (1_018_000, 0, 1_018_000_000), (1_000, 1, 1_000_000), (1_018_000, 1, nil), (0, 1, nil),
        (0, 0, nil),
    ])
    func `the round trip after a retransmission is known only below the timeout of a retransmission`(
        microseconds: UInt32, retransmissions: Int, nanoseconds: Int64?
    ) {
        expectEqual(TCPProber.roundTrip(microseconds: microseconds, retransmissions: retransmissions), nanoseconds)
    }

    @Test func `a closed port refuses the connection, and the error queue is empty`() throws {
        let result = try ProbeNamespace().perform { try Self.probe(ProbeAttempt(id: 1, address: Self.home, port: 9)) }
        expectEqual(result, ProbeResult(id: 1, errno: ECONNREFUSED, call: "handshake"))
    }

    @Test(arguments: [("unreachable", EHOSTUNREACH), ("prohibit", EACCES), ("blackhole", EINVAL), ("throw", ENETUNREACH)])
    func `an unreachable, prohibit, blackhole or throw route fails the connect at once`(kind: String, number: Int32) throws {
        let namespace = try ProbeNamespace()
        try namespace.run("ip", "route add \(kind) 192.0.2.0/24")
        let result = try namespace.perform {
            try Self.probe(ProbeAttempt(id: 1, address: IPAddress(v4: 0xc000_0201), port: 9))
        }
        expectEqual(result, ProbeResult(id: 1, errno: number, call: "connect"))
    }

    @Test func `a probe bound to a missing interface fails with ENODEV`() throws {
        let attempt = ProbeAttempt(id: 1, address: Self.home, port: 9, interface: "there-is-none")
        let result = try ProbeNamespace().perform { try Self.probe(attempt) }
        expectEqual(result, ProbeResult(id: 1, errno: ENODEV, call: "setsockopt"))
    }

    @Test func `a probe bound to an interface succeeds over it`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            let result = try Self.probe(ProbeAttempt(id: 1, address: Self.home, port: port, interface: "lo"))
            expectEqual(result?.errno, 0)
        }
    }

    @Test func `probes beyond the limit wait`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            let loop = try EventLoop()
            var prober = TCPProber(limit: 1)
            let attempts = (1...5 as ClosedRange<UInt64>).map { ProbeAttempt(id: $0, address: Self.home, port: port) }
            for attempt in attempts { expectNil(prober.start(attempt, on: loop, now: .read())) }
            expectEqual(prober.startWaiting(on: loop, now: .read()), [])
            expectEqual(prober.count, 1)
            // The second attempt is canceled in the queue. Then the first one is canceled, and the third takes its place.
            prober.cancel(2, on: loop)
            prober.cancel(1, on: loop)
            expectEqual(prober.count, 0)
            expectEqual(prober.startWaiting(on: loop, now: .read()), [])
            expectEqual(prober.count, 1)
            prober.cancel(4, on: loop)
            prober.cancel(5, on: loop)
            prober.cancel(3, on: loop)
            expectEqual(prober.startWaiting(on: loop, now: .read()), [])
            expectEqual(prober.count, 0)
        }
    }

    @Test func `a probe that waits too long is not sent, and a failure of a queued probe is reported`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            let loop = try EventLoop()
            var prober = TCPProber(limit: 1)
            let (late, lost) = (Moment.read(), IPAddress(v4: 0xc000_0201))
            expectNil(prober.start(ProbeAttempt(id: 1, address: Self.home, port: port), on: loop, now: late))
            let second = ProbeAttempt(id: 2, address: Self.home, port: port, latestStart: late.monotonicNanoseconds)
            expectNil(prober.start(second, on: loop, now: late))
            expectNil(prober.start(ProbeAttempt(id: 3, address: lost, port: port), on: loop, now: late))
            expectEqual(prober.startWaiting(on: loop, now: late), [ProbeResult(id: 2, errno: EMFILE, call: "queue")])
            prober.cancel(1, on: loop)
            expectEqual(prober.startWaiting(on: loop, now: late), [ProbeResult(id: 3, errno: ENETUNREACH, call: "connect")])
        }
    }

    @Test func `the limit follows the descriptors that are free, less a reserve`() {
        expectEqual(TCPProber.limit(for: DescriptorUse(limit: 64, open: 20)), 33)
        expectEqual(TCPProber.limit(for: DescriptorUse(limit: 1_024, open: 24)), 936)
        expectEqual(TCPProber.limit(for: DescriptorUse(limit: 20, open: 30)), 1)
    }

    private static func peerPort(of descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = withUnsafeMutableBytes(of: &address) { bytes in
            getpeername(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
        }
        return number == 0 && address.sin_family == AF_INET ? UInt16(bigEndian: address.sin_port) : nil
    }

    /// Returns a copy of the prober's socket, as another thread that forks holds one. Closing the socket then does not remove it from epoll.
    private static func copyOfSocket(to port: UInt16) throws -> Int32 {
        dup(try #require((3..<1_024).first { peerPort(of: $0) == port }))
    }

    @Test func `a canceled probe gives no result, and its token no event`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            var loop = try EventLoop()
            var prober = TCPProber()
            expectNil(prober.start(ProbeAttempt(id: 1, address: Self.home, port: port), on: loop, now: .read()))
            let ready = loop.wait(until: MonotonicClock.now() + 5_000_000_000)
            expectEqual(ready.map(\.token), [TCPProber.firstToken])
            let held = try Self.copyOfSocket(to: port)
            defer { close(held) }
            prober.cancel(1, on: loop)
            for ready in ready { expectNil(prober.ready(ready, on: loop, now: .read())) }
            expectEmpty(loop.wait(until: MonotonicClock.now()))
            // The next attempt has another token, so that an event of the old one cannot be taken for it.
            expectNil(prober.start(ProbeAttempt(id: 2, address: Self.home, port: port), on: loop, now: .read()))
            let next = loop.wait(until: MonotonicClock.now() + 5_000_000_000)
            expectEqual(next.count, 1)
            #expect(next.map(\.token) != ready.map(\.token))
        }
    }

    @Test func `a socket that another process still holds is not reported after its result`() throws {
        try ProbeNamespace().perform {
            let (server, port) = try Self.listener()
            defer { close(server) }
            var loop = try EventLoop()
            var prober = TCPProber()
            expectNil(prober.start(ProbeAttempt(id: 1, address: Self.home, port: port), on: loop, now: .read()))
            let ready = try #require(loop.wait(until: MonotonicClock.now() + 5_000_000_000).first)
            let held = try Self.copyOfSocket(to: port)
            defer { close(held) }
            expectEqual(prober.ready(ready, on: loop, now: .read())?.errno, 0)
            expectEmpty(loop.wait(until: MonotonicClock.now()))
        }
    }

    @Test func `a local firewall's rejection is reported with this machine's own address`() throws {
        let namespace = try ProbeNamespace()
        try namespace.run(
            "nft", "-f -", input: "table inet t { chain c { type filter hook output priority 0; tcp dport 9 reject\n }\n }\n")
        let result = try namespace.perform { try Self.probe(ProbeAttempt(id: 1, address: Self.home, port: 9)) }
        expectEqual(result?.errno, ECONNREFUSED)
        expectEqual(result?.reporter, ProbeResult.Reporter(origin: 2, type: 3, code: 3, offender: Self.home))
    }
}

/// A client, a router, and a network behind the router.
@Suite(.requiresNamespaces) struct TCPProberRouterTests {
    private let client: ProbeNamespace
    private let router: ProbeNamespace
    private static let gateway = IPAddress(v4: 0x0a00_0001)
    private static let own = IPAddress(v4: 0x0a00_0002)

    init() throws {
        client = try ProbeNamespace()
        router = try ProbeNamespace()
        try client.run("ip", "link add name v0 index 700 type veth peer name v1 index 701 netns \(router.path)")
        try client.run("ip", "addr add 10.0.0.2/24 dev v0")
        try client.run("ip", "addr add fe80::2/64 dev v0 nodad")
        try client.run("ip", "addr add 2001:db8::2/64 dev v0 nodad")
        try client.run("ip", "link set v0 up")
        try router.run("ip", "addr add 10.0.0.1/24 dev v1")
        try router.run("ip", "addr add fe80::1/64 dev v1 nodad")
        try router.run("ip", "link set v1 up")
        try client.run("ip", "route add default via 10.0.0.1")
        try router.perform {
            let descriptor = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC)
            defer { close(descriptor) }
            try #require(write(descriptor, "1", 1) == 1)
        }
    }

    private func probe(_ attempt: ProbeAttempt) throws -> ProbeResult? {
        try client.perform { try TCPProberTests.probe(attempt) }
    }

    @Test(
        arguments: [
            ("host-unreachable", EHOSTUNREACH, 1), ("net-unreachable", ENETUNREACH, 0), ("port-unreachable", ECONNREFUSED, 3),
            ("admin-prohibited", EHOSTUNREACH, 13),
        ] as [(String, Int32, UInt8)])
    func `a router's ICMP error is reported with its address`(word: String, number: Int32, code: UInt8) throws {
        let rule = "table ip t { chain c { type filter hook forward priority 0; reject with icmp \(word)\n }\n }\n"
        try router.run("nft", "-f -", input: rule)
        // Packets leave by another interface. A router that sends them back where they came from redirects first, and its ICMP is
        // then rate-limited.
        try router.run("ip", "link add name v2 index 702 type veth peer name v3 index 703")
        try router.run("ip", "link set v3 up")
        try router.run("ip", "link set v2 up")
        try router.run("ip", "route add default dev v2")
        let result = try probe(ProbeAttempt(id: 1, address: IPAddress(v4: 0xc000_0201), port: 9))
        expectEqual(result?.errno, number)
        expectEqual(result?.call, "handshake")
        expectEqual(result?.reporter, ProbeResult.Reporter(origin: 2, type: 3, code: code, offender: Self.gateway))
    }

    @Test func `the kernel itself reports a host on the link that does not answer ARP`() throws {
        try client.run("ip", "ntable change name arp_cache dev v0 retrans 50")
        let result = try probe(ProbeAttempt(id: 1, address: IPAddress(v4: 0x0a00_0063), port: 9))
        expectEqual(result?.errno, EHOSTUNREACH)
        expectEqual(result?.reporter, ProbeResult.Reporter(origin: 2, type: 3, code: 1, offender: Self.own))
    }

    @Test func `a link-local address needs a zone`() throws {
        let address = try #require(IPAddress("fe80::1"))
        try expectEqual(probe(ProbeAttempt(id: 1, address: address, port: 9)), ProbeResult(id: 1, errno: EINVAL, call: "connect"))
        try expectEqual(
            probe(ProbeAttempt(id: 2, address: address, zone: 700, port: 9)),
            ProbeResult(id: 2, errno: ECONNREFUSED, call: "handshake"))
    }

    @Test func `the kernel itself reports an IPv6 host on the link that does not answer neighbor discovery`() throws {
        try client.run("ip", "ntable change name ndisc_cache dev v0 retrans 50")
        // For a link-local address the kernel reports no ICMP error. Only the neighbor table shows the failure.
        let address = try #require(IPAddress("2001:db8::63"))
        let result = try probe(ProbeAttempt(id: 1, address: address, port: 9))
        expectEqual(result?.errno, EHOSTUNREACH)
        expectEqual(result?.reporter?.type, 1)
        expectEqual(result?.reporter?.code, 3)
        expectEqual(result?.reporter?.offender, IPAddress("2001:db8::2"))
    }
}
