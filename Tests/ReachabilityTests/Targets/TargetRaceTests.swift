import Expectations
import Testing

@testable import Reachability

/// Names, several addresses, and attempts that overlap.
@Suite struct TargetRaceTests {
    private func named(_ settings: ProbeSettings = Transcript.unscheduled()) throws -> Transcript {
        var target = try Transcript("server.example:443", settings)
        try #require(target.at(0, .begin) == ["initial unknown", "resolve 1 server.example"])
        return target
    }

    @Test func `the routes of a resolved name's addresses are queried, with the families alternating`() throws {
        var target = try named()
        expectEqual(
            target.at(5, .found(1, "2001:db8::1", "2001:db8::2", "192.0.2.1")),
            ["route? 2001:db8::1", "route? 192.0.2.1", "route? 2001:db8::2"])
        expectEqual(target.at(5, .route(to: "2001:db8::1")), [])
        expectEqual(target.at(5, .noRoute(to: "192.0.2.1")), [])
        expectEqual(target.at(5, .route(to: "2001:db8::2")), ["connect 2 2001:db8::1"])
        expectEqual(target.tickDue, 255)
    }

    /// Two addresses that both have a route. The first attempt started at 0.
    private func racing() throws -> Transcript {
        var target = try named()
        _ = target.at(0, .found(1, "2001:db8::1", "192.0.2.1"))
        _ = target.at(0, .route(to: "2001:db8::1", gateway: "fe80::1"))
        try #require(target.at(0, .route(to: "192.0.2.1")) == ["connect 2 2001:db8::1"])
        return target
    }

    @Test func `the second address is attempted after 250 ms, and the first success cancels the other attempt`() throws {
        var target = try racing()
        expectEqual(target.at(249, .tick), [])
        expectEqual(target.at(250, .tick), ["connect 3 192.0.2.1"])
        expectEqual(target.at(260, .connected(2)), ["cancel 3", "report ok", "up 2001:db8::1 eth0"])
        expectEqual(target.at(261, .connected(3)), [])
    }

    @Test func `the second address is attempted at once if the first one fails`() throws {
        var target = try racing()
        expectEqual(target.at(3, .failed(2, .networkUnreachable, call: "connect")), ["connect 3 192.0.2.1"])
        expectEqual(target.at(9, .connected(3)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `a retransmitted SYN has no round trip, and each unanswered packet is counted`() throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "192.0.2.1")), ["connect 1 192.0.2.1"])
        expectEqual(target.at(500, .tick), ["connect 2 192.0.2.1"])
        let late = target.at(1_024, .probe(ProbeResult(id: 1, roundTripNanoseconds: 0, retransmissions: 1)))
        expectEqual(late, ["cancel 2", "report ok", "up 192.0.2.1 eth0"])
        #expect(report(target)?.roundTrip == nil && report(target)?.lostPackets == 2)
        // The time of the connection is the upper limit of the round trip.
        expectEqual(target.published?.roundTrip, .milliseconds(1_024))
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: "192.0.2.1"))
        _ = target.at(10_005, .connected(3))
        #expect(report(target)?.roundTrip == .milliseconds(5) && report(target)?.lostPackets == 0)
    }

    @Test func `an attempt that began within two round trips before the answer is not lost`() throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        expectEqual(target.at(500, .tick), ["connect 2 192.0.2.1"])
        _ = target.at(600, .probe(ProbeResult(id: 1, roundTripNanoseconds: 600_000_000, retransmissions: 0)))
        expectEqual(report(target)?.lostPackets, 0)
    }

    private func report(_ target: Transcript) -> ProbeReport? {
        for case .report(let report) in target.effects { return report }
        return nil
    }

    @Test func `of several failures the one that got furthest gives the cause`() throws {
        var target = try racing()
        _ = target.at(3, .failed(2, .connectionRefused))
        expectEqual(target.at(9, .failed(3, .hostUnreachable, icmp: (3, 1), from: "10.0.0.1")), ["report tcp/refused"])
    }

    @Test func `at the deadline all attempts are canceled and their next hops are queried`() throws {
        var target = try racing()
        _ = target.at(250, .tick)
        expectEqual(
            target.at(3000, .tick),
            ["cancel 2", "cancel 3", "neighbor? fe80::1 on 2", "neighbor? 10.0.0.1 on 2"])
        let (v6, v4) = (try #require(IPAddress("fe80::1")), IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(3001, .neighbor(Neighbor.Key(interface: 2, address: v6), .state(.failed))), [])
        expectEqual(
            target.at(3001, .neighbor(Neighbor.Key(interface: 2, address: v4), .state(.incomplete))),
            [
                "report neighbor/gateway-silent"
            ])
        expectEqual(target.cause?.evidence["neighbor_state"], .text("FAILED"))
    }

    @Test func `a missing neighbor answer is not awaited beyond 200 ms`() throws {
        var target = try racing()
        _ = target.at(250, .tick)
        _ = target.at(2300, .tick)
        _ = target.at(2300, .tick)
        _ = target.at(3000, .tick)
        // The probe was extended by 90 ms.
        expectEqual(target.tickDue, 3290)
        expectEqual(target.at(3290, .tick), ["report tcp/timeout"])
    }

    @Test func `a silent host on the link is unreachable, not down`() throws {
        var target = try Transcript("10.0.0.9:22", ProbeSettings(failAfter: 1))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "10.0.0.9", gateway: nil))
        expectEqual(target.at(3000, .tick), ["cancel 1", "neighbor? 10.0.0.9 on 2"])
        let host = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0009))
        expectEqual(
            target.at(3000, .neighbor(host, .state(.incomplete))),
            ["report neighbor/host-silent", "unreachable neighbor/host-silent 10.0.0.9 eth0"])
    }

    @Test func `a probe tries all addresses, also if the first four refuse`() throws {
        var target = try named()
        _ = target.at(0, .found(1, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"))
        for last in 1...4 { _ = target.at(0, .route(to: "192.0.2.\(last)")) }
        expectEqual(target.at(0, .route(to: "192.0.2.5")), ["connect 2 192.0.2.1"])
        expectEqual(target.at(1, .failed(2, .connectionRefused)), ["connect 3 192.0.2.2"])
        expectEqual(target.at(2, .failed(3, .connectionRefused)), ["connect 4 192.0.2.3"])
        expectEqual(target.at(3, .failed(4, .connectionRefused)), ["connect 5 192.0.2.4"])
        expectEqual(target.at(4, .failed(5, .connectionRefused)), ["connect 6 192.0.2.5"])
        expectEqual(target.at(5, .connected(6)), ["report ok", "up 192.0.2.5 eth0"])
    }

    /// The requests of the last event to resolve a name, each with the time in milliseconds of the failure before it; -1 for none.
    private func failuresBeforeLookups(_ target: Transcript) -> [Int64] {
        target.effects.compactMap { effect in
            if case .resolve(let request) = effect { request.notBefore == .min ? -1 : request.notBefore / 1_000_000 } else { nil }
        }
    }

    @Test func `a failed address is looked up again with the next probe, and the cause has the answer's age`() throws {
        var target = try named()
        expectEqual(failuresBeforeLookups(target), [-1])
        func answer(_ id: UInt64, _ address: String, age: Int64) -> Transcript.Event {
            var answer = LookupAnswer(id: id, addresses: [IPAddress(address)].compactMap { $0 }, answeredBy: .dns)
            answer.ageNanoseconds = age * 1_000_000_000
            return .lookup(answer)
        }
        _ = target.at(0, answer(1, "192.0.2.1", age: 40))
        expectEqual(target.at(0, .route(to: "192.0.2.1")), ["connect 2 192.0.2.1"])
        expectEqual(target.at(2_000, .failed(2, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.cause?.evidence["answer_age_s"], .number(42))
        expectEqual(target.at(2_000, .tick), ["resolve 3 server.example"])
        expectEqual(failuresBeforeLookups(target), [2_000])
        _ = target.at(2_001, answer(3, "192.0.2.9", age: 0))
        expectEqual(target.at(2_001, .route(to: "192.0.2.9")), ["connect 4 192.0.2.9"])
        expectEqual(target.at(2_002, .connected(4)), ["report ok", "up 192.0.2.9 eth0"])
        _ = target.at(10_000, .tick)
        expectEqual(failuresBeforeLookups(target), [-1])
    }

    @Test func `an address that has no route any more is looked up again`() throws {
        var target = try named()
        _ = target.at(0, .found(1, "192.0.2.1"))
        expectEqual(target.at(0, .noRoute(to: "192.0.2.1")).first?.hasPrefix("unreachable route/no-route"), true)
        expectEqual(target.at(10_000, .tick), ["resolve 2 server.example"])
        expectEqual(failuresBeforeLookups(target), [0])
    }

    @Test func `the address that answered stays first if the name server rotates the addresses`() throws {
        var target = try named()
        _ = target.at(0, .found(1, "192.0.2.1", "192.0.2.2"))
        _ = target.at(0, .route(to: "192.0.2.1"))
        _ = target.at(0, .route(to: "192.0.2.2"))
        expectEqual(target.at(1, .connected(2)), ["report ok", "up 192.0.2.1 eth0"])
        expectEqual(target.at(10_000, .tick), ["resolve 3 server.example"])
        expectEqual(target.at(10_001, .found(3, "192.0.2.2", "192.0.2.1")), ["route? 192.0.2.1", "route? 192.0.2.2"])
    }

    @Test func `without a route to any address, the lowest failing layer gives the cause`() throws {
        var target = try named()
        target.host.levels[2] = .noCarrier
        _ = target.at(0, .found(1, "2001:db8::1", "192.0.2.1"))
        _ = target.at(0, .noRoute(to: "2001:db8::1"))
        expectEqual(target.at(0, .route(to: "192.0.2.1")), ["unreachable link/no-carrier 192.0.2.1 eth0"])
        // The name is resolved again by the schedule. A network change only queries the routes.
        expectEqual(target.at(500, .localStateChanged), ["route? 2001:db8::1", "route? 192.0.2.1"])
        expectEqual(target.at(10_000, .tick), ["resolve 2 server.example"])
    }

    @Test(
        arguments: [
            (.nameNotFound, 5, true, "down dns/name-not-found"), (.noData, 5, true, "down dns/no-address-for-family"),
            (.noAddressForFamily, 5, true, "down dns/no-address-for-family"),
            (.tryAgain, 5, true, "unreachable dns/server-failure"),
            (.tryAgain, 2000, true, "unreachable dns/resolver-silent"), (.failure, 5, true, "unreachable dns/server-failure"),
            (.tryAgain, 5, false, "unreachable dns/no-resolver"), (.nameNotFound, 5, false, "down dns/name-not-found"),
            (.outOfMemory, 5, true, "unreachable local/file-limit"),
        ] as [(ResolverCode, Int64, Bool, String)])
    func `only an authority's negative answer is the fault of the target`(
        code: ResolverCode, after: Int64, hasResolver: Bool, status: String
    ) throws {
        var target = try named(ProbeSettings(failAfter: 1))
        target.host.hasResolver = hasResolver
        let cause = try #require(status.split(separator: " ").last)
        expectEqual(target.at(after, .notFound(1, code, after: after)), ["report \(cause)", status])
    }

    @Test func `a lookup that outlasts the probe is a silent resolver, and its late answer is ignored`() throws {
        var target = try named(ProbeSettings(failAfter: 1))
        expectEqual(target.tickDue, 3000)
        expectEqual(target.at(3000, .tick), ["report dns/resolver-silent", "unreachable dns/resolver-silent"])
        expectEqual(target.at(3500, .found(1, "192.0.2.1")), [])
    }

    @Test(
        arguments: [
            (.nameNotFound, "dns/name-not-found"), (.noData, "dns/no-address-for-family"),
            (.noAddressForFamily, "dns/no-address-for-family"),
        ] as [(ResolverCode, String)])
    func `a name server's negative answer is confirmed and published without a default route`(code: ResolverCode, cause: String)
        throws
    {
        var target = try named()
        target.host.pathCause = Cause(.route, .noRoute, detail: "there is no default route")
        expectEqual(target.at(5, .notFound(1, code)), ["report \(cause)"])
        _ = target.at(1000, .tick)
        expectEqual(target.at(1005, .notFound(2, code)), ["report \(cause)", "down \(cause)"])
    }

    @Test func `an attempt that was not made because of the queue publishes nothing`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "192.0.2.1")), ["connect 1 192.0.2.1"])
        expectEqual(target.at(1500, .failed(1, .tooManyFiles, call: ProbeResult.queue)), [])
        expectEqual(target.tickDue, 1500)
        expectEqual(target.at(1500, .tick), ["route? 192.0.2.1"])
    }

    @Test func `without a path a resolver's failure is published at once with the path's cause`() throws {
        var target = try named()
        target.host.pathCause = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        expectEqual(target.at(5, .notFound(1, .tryAgain)), ["report link/no-carrier", "unreachable link/no-carrier"])
        // A network change resolves the name again, at most once a second.
        expectEqual(target.at(2000, .localStateChanged), ["resolve 2 server.example"])
        _ = target.at(2005, .notFound(2, .tryAgain))
        expectEqual(target.at(2100, .localStateChanged), [])
        expectEqual(target.tickDue, 3000)
        expectEqual(target.at(3000, .tick), ["resolve 3 server.example"])
    }

    @Test func `a network change during a lookup repeats the lookup within a second`() throws {
        var target = try named(ProbeSettings(failAfter: 1))
        expectEqual(target.at(100, .localStateChanged), [])
        _ = target.at(200, .notFound(1, .tryAgain))
        expectEqual(target.tickDue, 1000)
    }

    @Test func `a name's addresses of a family that is not configured are ignored`() throws {
        var target = try named(ProbeSettings(failAfter: 1, families: [.v6]))
        expectEqual(
            target.at(5, .found(1, "192.0.2.1")),
            ["report dns/no-address-for-family", "down dns/no-address-for-family"])
    }

    @Test(arguments: [(LookupAnswer.Source.dns, "down"), (.nss, "down"), (.hosts, "unreachable")])
    func `a name with only 0.0.0.0 and the address :: is not probed`(source: LookupAnswer.Source, state: String) throws {
        var target = try named(ProbeSettings(failAfter: 1))
        let answer = LookupAnswer(id: 1, addresses: [IPAddress(v6: 0, 0), IPAddress(v4: 0)], answeredBy: source)
        expectEqual(target.at(5, .lookup(answer)), ["report dns/unusable-address", "\(state) dns/unusable-address"])
        expectEqual(target.cause?.detail, "server.example resolves to ::, to which no connection is possible")
        expectEqual(target.cause?.evidence["answered_by"], .text(source.rawValue))
    }

    @Test func `a name with 0.0.0.0 beside a usable address is probed at the usable one`() throws {
        var target = try named()
        expectEqual(target.at(5, .found(1, "0.0.0.0", "192.0.2.1")), ["route? 192.0.2.1"])
    }

    @Test func `a probe's report has the answer of its lookup, and the request has the probe's deadline`() throws {
        var target = try Transcript("server.example:443", ProbeSettings(timeout: .seconds(2), failAfter: 1))
        _ = target.at(0, .begin)
        guard case .resolve(let request) = target.effects.last else { return #expect(Bool(false)) }
        expectEqual(request.deadline, 2_000_000_000)
        let answer = LookupAnswer(id: 1, code: -2, answeredBy: .dns, v4: FamilyLookup(.nameNotFound))
        _ = target.at(5, .lookup(answer))
        guard case .report(let report) = target.effects.first else { return #expect(Bool(false)) }
        expectEqual(report.lookup, answer)
    }
}
