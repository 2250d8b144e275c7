import EventLoop
import Expectations
import Foundation
import Glibc
import NetworkLab
import Pacing
import Testing

@testable import Reachability

/// Echo requests through the real kernel, in a namespace of their own.
@Suite(.requiresNamespaces) struct EchoProberTests {
    private static let home = IPAddress(v4: 0x7f00_0001)
    private static let home6 = IPAddress(v6: 0, 1)

    private static func burst(count: Int = 1, size: Int = 56, spacing: Int64 = 1_000_000, limit: UInt8? = nil) -> EchoBurst {
        EchoBurst(scheme: .ping, count: count, spacing: spacing, size: size, hopLimit: limit, forbidsFragments: false)
    }

    /// Runs attempts to their ends, and `check` when all have started.
    ///
    /// - Returns: the results that came within ten seconds, in the order of their attempts.
    private static func run(
        _ attempts: [(ProbeAttempt, EchoBurst)], until deadline: Int64? = nil, check: () throws -> Void = {}
    ) throws -> [ProbeResult] {
        var loop = try EventLoop()
        var prober = EchoProber()
        let end = deadline ?? MonotonicClock.now() + 10_000_000_000
        var results: [ProbeResult] = []
        for (attempt, burst) in attempts {
            var attempt = attempt
            attempt.deadline = end
            if let result = prober.start(attempt, burst, on: loop, now: .read()) { results.append(result) }
        }
        try check()
        while prober.count > 0, MonotonicClock.now() < end {
            for ready in loop.wait(until: min(prober.deadline ?? end, end)) {
                results += prober.ready(ready, on: loop, now: .read())
            }
            results += prober.advance(on: loop, now: .read())
        }
        results += prober.advance(on: loop, now: .read())
        prober.closeAll()
        return results.sorted { $0.id < $1.id }
    }

    private static func setRange(_ range: String) throws {
        let file = try #require(fopen("/proc/sys/net/ipv4/ping_group_range", "w"))
        fputs(range, file)
        try #require(fclose(file) == 0)
    }

    @Test(arguments: ["1 0", "0 2147483647"], [EchoProberTests.home, home6])
    func `this machine answers a burst, over a raw socket and over an unprivileged one`(range: String, address: IPAddress) throws
    {
        try ProbeNamespace().perform {
            try Self.setRange(range)
            let results = try Self.run([
                (ProbeAttempt(id: 1, address: address, port: 0), Self.burst(count: 5)),
                (ProbeAttempt(id: 2, address: address, port: 0), Self.burst(size: 0)),
                (ProbeAttempt(id: 3, address: address, port: 0), Self.burst(size: 20_000)),
            ])
            expectEqual(results.map(\.id), [1, 2, 3])
            for result in results {
                expectEqual(result.errno, 0)
                #expect(result.roundTripNanoseconds > 0 && result.roundTripNanoseconds < 1_000_000_000)
            }
            let facts = try #require(results.first?.levels?.facts[EchoFacts.self])
            #expect(facts.sent == 5 && facts.received == 5 && facts.jitter != nil)
            expectEqual(results.first?.retransmissions, 0)
        }
    }

    @Test func `a thousand attempts share one socket, and each gets its own answer`() throws {
        try ProbeNamespace().perform {
            try Self.setRange("0 2147483647")
            let attempts = (1...1_000).map { number in
                (ProbeAttempt(id: UInt64(number), address: IPAddress(v4: 0x7f00_0000 + UInt32(number)), port: 0), Self.burst())
            }
            let results = try Self.run(attempts) { try expectEqual(Self.sockets(), 1) }
            expectEqual(results.map(\.id), Array(1...1_000))
            #expect(results.allSatisfy { $0.errno == 0 })
            // A process that another test starts has a copy of the descriptor until it runs its program.
            let end = MonotonicClock.now() + 60_000_000_000
            while try Self.sockets() > 0, MonotonicClock.now() < end { sched_yield() }
            try expectEqual(Self.sockets(), 0, "the socket is closed")
        }
    }

    @Test func `a router that drops the request at its hop limit is the reporter`() throws {
        let (client, router) = (try ProbeNamespace(), try ProbeNamespace())
        try Self.join(client, router)
        try client.perform {
            for range in ["1 0", "0 2147483647"] {
                try Self.setRange(range)
                let result = try #require(
                    try Self.run([(ProbeAttempt(id: 1, address: IPAddress(v4: 0xc000_0209), port: 0), Self.burst(limit: 1))])
                        .first)
                expectEqual(result.call, ProbeResult.answer)
                expectEqual(result.reporter?.type, 11)
                expectEqual(result.reporter?.offender, IPAddress(v4: 0x0a01_00fe))
            }
        }
    }

    @Test func `an address that nobody answers has no result`() throws {
        let (client, router) = (try ProbeNamespace(), try ProbeNamespace())
        try Self.join(client, router)
        try router.run(
            "nft", "-f -",
            input: "table ip t { chain c { type filter hook input priority 0; icmp type echo-request drop\n }\n }\n")
        try client.perform {
            let end = MonotonicClock.now() + 300_000_000
            let results = try Self.run(
                [(ProbeAttempt(id: 1, address: IPAddress(v4: 0x0a01_00fe), port: 0), Self.burst(count: 3))], until: end)
            expectEqual(results, [])
        }
    }

    @Test func `a filter of this machine refuses the request`() throws {
        let namespace = try ProbeNamespace()
        try namespace.run(
            "nft", "-f -",
            input: "table ip t { chain c { type filter hook output priority 0; icmp type echo-request drop\n }\n }\n")
        try namespace.perform {
            let result = try #require(try Self.run([(ProbeAttempt(id: 1, address: Self.home, port: 0), Self.burst())]).first)
            expectEqual(result.errno, EPERM)
            expectEqual(result.call, "sendto")
        }
    }

    @Test func `requests that the system refuses after the first one are lost`() throws {
        let namespace = try ProbeNamespace()
        try namespace.run(
            "nft", "-f -",
            input: """
                table ip t { chain c { type filter hook output priority 0
                icmp type echo-request limit rate 1/hour burst 1 packets accept
                icmp type echo-request drop
                }
                }

                """)
        try namespace.perform {
            let attempt = (ProbeAttempt(id: 1, address: Self.home, port: 0), Self.burst(count: 3))
            let result = try #require(try Self.run([attempt], until: MonotonicClock.now() + 500_000_000).first)
            let facts = try #require(result.levels?.facts[EchoFacts.self])
            #expect(result.errno == 0 && result.retransmissions == 2 && facts.sent == 3 && facts.received == 1)
        }
    }

    @Test func `a canceled attempt has no result, and its answer reaches no other`() throws {
        try ProbeNamespace().perform {
            var loop = try EventLoop()
            var prober = EchoProber()
            for id in 1...2 as ClosedRange<UInt64> {
                _ = prober.start(ProbeAttempt(id: id, address: Self.home, port: 0), Self.burst(), on: loop, now: .read())
            }
            prober.cancel(1, on: loop)
            var results: [ProbeResult] = []
            let end = MonotonicClock.now() + 10_000_000_000
            while results.isEmpty, MonotonicClock.now() < end {
                for ready in loop.wait(until: end) { results += prober.ready(ready, on: loop, now: .read()) }
            }
            expectEqual(results.map(\.id), [2])
            expectEqual(prober.count, 0)
        }
    }

    /// Returns the number of unprivileged sockets of the thread's namespace. Descriptors of the process would count those of tests beside this one.
    private static func sockets() throws -> Int {
        let list = try #require(try? String(contentsOfFile: "/proc/thread-self/net/icmp", encoding: .utf8))
        return list.split(separator: "\n").count - 1
    }

    /// Joins a client, 10.1.0.1, to a router, 10.1.0.254, which is its gateway and has a route to 192.0.2.0/24.
    private static func join(_ client: ProbeNamespace, _ router: ProbeNamespace) throws {
        try client.run("ip", "link add v0 type veth peer name r0 netns \(router.path)")
        try client.run("ip", "addr add 10.1.0.1/24 dev v0")
        try client.run("ip", "link set v0 up")
        try router.run("ip", "addr add 10.1.0.254/24 dev r0")
        try router.run("ip", "link set r0 up")
        try client.run("ip", "route add default via 10.1.0.254")
        try router.run("ip", "route add 192.0.2.0/24 via 10.1.0.77")
        try router.perform {
            let file = try #require(fopen("/proc/sys/net/ipv4/ip_forward", "w"))
            fputs("1", file)
            fclose(file)
        }
    }
}
