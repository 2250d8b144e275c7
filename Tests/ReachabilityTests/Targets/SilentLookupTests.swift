import Expectations
import Testing

@testable import Reachability

private let resolver = "203.0.113.53"
private let second = "203.0.113.54"
private let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))

/// If no name server answers, the gateways that lead to them are examined.
@Suite struct SilentLookupTests {
    private func named(_ settings: ProbeSettings = ProbeSettings(failAfter: 1)) throws -> Transcript {
        var target = try Transcript("server.example:443", settings)
        expectEqual(target.at(0, .begin), ["initial unknown", "resolve 1 server.example"])
        return target
    }

    private func silent(_ id: UInt64, _ servers: String...) -> TargetMachine.Event {
        let exchanges = servers.compactMap { IPAddress($0) }
            .map { NameServerExchange(ResolverConfiguration.Nameserver($0), .silent) }
        return lookup(id, exchanges)
    }

    private func lookup(_ id: UInt64, _ exchanges: [NameServerExchange]) -> TargetMachine.Event {
        let failed = FamilyLookup(.failed, exchanges: exchanges)
        return .lookup(
            LookupAnswer(
                id: id, code: NameCode.tryAgain, elapsedNanoseconds: 2_100_000_000, answeredBy: .dns, v4: failed, v6: failed))
    }

    /// The kernel's route to a name server: by default over the gateway.
    private func route(to server: String, gateway: IPAddress? = gateway.address, kind: Route.Kind = .unicast)
        -> TargetMachine.Event
    {
        .route(
            RouteQuery(IPAddress(server) ?? IPAddress(v4: 0), port: 53),
            .route(ChosenRoute(kind: kind, interface: 2, gateway: gateway, source: IPAddress(v4: 0x0a00_0002))))
    }

    private func hop(_ outcome: HostReply.Outcome, before: Bool = true) -> HopBook.State {
        HopBook.State(isAlive: outcome == .answered, reply: HostReply(outcome), hasAnswered: before)
    }

    private static let silentGateway = ["report neighbor/gateway-silent", "unreachable neighbor/gateway-silent eth0"]
    private static let silentResolver = ["report dns/resolver-silent", "unreachable dns/resolver-silent"]

    @Test func `a lookup whose questions waited for most of the time is no failure, and the probe begins again`() throws {
        var target = try named()
        var answer = LookupAnswer(
            id: 1, code: NameCode.tryAgain, elapsedNanoseconds: 3_000_000_000, answeredBy: .dns, v4: FamilyLookup(.unanswered))
        answer.queuedNanoseconds = 1_500_000_001
        expectEqual(target.at(3000, .lookup(answer)), ["resolve 2 server.example"])
        expectEqual(target.machine.deadline, 6_000_000_000)
        (answer.id, answer.queuedNanoseconds) = (2, 1_500_000_000)
        expectEqual(target.at(6000, .lookup(answer)), Self.silentResolver)
    }

    @Test func `after a long time in the queue, a resolved name has the complete deadline for its connections`() throws {
        var target = try named()
        var answer = LookupAnswer(id: 1, addresses: [try #require(IPAddress("192.0.2.1"))], answeredBy: .dns)
        answer.queuedNanoseconds = 2_900_000_000
        expectEqual(target.at(2950, .lookup(answer)), ["resolve 2 server.example"])
        (answer.id, answer.queuedNanoseconds) = (2, nil)
        expectEqual(target.at(2950, .lookup(answer)), ["route? 192.0.2.1"])
        expectEqual(target.machine.deadline, 5_950_000_000)
    }

    @Test(arguments: [(1400, 3000), (1500, 3000), (1501, 3001), (2990, 4490)])
    func `after a slow lookup, a connection has half of the deadline in any case`(resolved: Int64, end: Int64) throws {
        var target = try named()
        let answer = LookupAnswer(id: 1, addresses: [try #require(IPAddress("192.0.2.1"))], answeredBy: .dns)
        expectEqual(target.at(resolved, .lookup(answer)), ["route? 192.0.2.1"])
        expectEqual(target.machine.deadline, end * 1_000_000)
    }

    @Test func `a gateway that answered queries before and does not now is the cause of a silent lookup`() throws {
        var target = try named()
        target.hostState = hop(.silent)
        expectEqual(target.at(2100, silent(1, resolver)), ["route? 203.0.113.53"])
        expectEqual(target.at(2100, route(to: resolver)), ["neighbor? 10.0.0.1 on 2"])
        expectEqual(target.at(2650, .neighbor(gateway, .state(.reachable))), Self.silentGateway)
        let cause = try #require(target.cause)
        expectEqual(
            cause.detail, "the gateway 10.0.0.1, which leads to the name server 203.0.113.53, does not answer on its link")
        expectEqual(
            cause.evidence,
            [
                "name": .text("server.example"), "elapsed_ms": .number(2100), "answered_by": .text("dns"),
                "resolver": .text(resolver), "interface": .text("eth0"), "gateway": .text("10.0.0.1"),
                "neighbor_state": .text("REACHABLE"), "first_hop": .text("silent"),
            ])
    }

    @Test func `a gateway without a neighbor entry is the cause of a lookup that the kernel refuses`() throws {
        var target = try named()
        target.hostState = hop(.silent, before: false)
        let server = ResolverConfiguration.Nameserver(try #require(IPAddress(resolver)))
        let exchange = NameServerExchange(
            server, .failed, errno: SystemErrorNumber.hostUnreachable.rawValue, call: "receive")
        expectEqual(target.at(2100, lookup(1, [exchange])), ["route? 203.0.113.53"])
        _ = target.at(2100, route(to: resolver))
        expectEqual(target.at(2100, .neighbor(gateway, .state(.failed))), Self.silentGateway)
    }

    @Test(arguments: [(HostReply.Outcome.answered, "answered"), (.silent, "unknown")])
    func `a name server is silent itself if its gateway is alive, or not known to be silent`(
        outcome: HostReply.Outcome, firstHop: String
    ) throws {
        var target = try named()
        target.hostState = hop(outcome, before: false)
        _ = target.at(2100, silent(1, resolver))
        _ = target.at(2100, route(to: resolver))
        expectEqual(target.at(2100, .neighbor(gateway, .state(.reachable))), Self.silentResolver)
        expectEqual(target.cause?.evidence["resolver"], .text(resolver))
        expectEqual(target.cause?.evidence["first_hop"], .text(firstHop))
    }

    @Test func `a name server on the link, or on this machine, is silent itself`() throws {
        for kind in [Route.Kind.unicast, .local] {
            var target = try named()
            target.hostState = hop(.silent)
            _ = target.at(2100, silent(1, resolver))
            expectEqual(target.at(2100, route(to: resolver, gateway: nil, kind: kind)), Self.silentResolver)
        }
    }

    @Test func `all silent name servers must be behind silent gateways`() throws {
        var target = try named()
        target.hostState = hop(.silent)
        expectEqual(target.at(2100, silent(1, resolver, second)), ["route? 203.0.113.53", "route? 203.0.113.54"])
        expectEqual(target.at(2100, route(to: resolver)), [])
        expectEqual(target.at(2100, route(to: second, gateway: nil)), Self.silentResolver)

        target = try named()
        target.hostState = hop(.silent)
        _ = target.at(2100, silent(1, resolver, second))
        _ = target.at(2100, route(to: resolver))
        expectEqual(target.at(2100, route(to: second)), ["neighbor? 10.0.0.1 on 2"])
        expectEqual(target.at(2650, .neighbor(gateway, .state(.reachable))), Self.silentGateway)
    }

    @Test func `a lookup that failed otherwise is not examined`() throws {
        var target = try named()
        let server = ResolverConfiguration.Nameserver(try #require(IPAddress(resolver)))
        expectEqual(
            target.at(5, lookup(1, [NameServerExchange(server, .answered, rcode: 2), NameServerExchange(server, .silent)])),
            ["report dns/server-failure", "unreachable dns/server-failure"])
    }

    @Test func `a kernel that does not answer ends the examination`() throws {
        var target = try named()
        target.hostState = hop(.silent)
        _ = target.at(2100, silent(1, resolver))
        expectEqual(target.tickDue, 2300)
        expectEqual(target.at(2300, .tick), Self.silentResolver)

        target = try named()
        _ = target.at(2100, silent(1, resolver))
        _ = target.at(2100, route(to: resolver))
        expectEqual(target.tickDue, 2800)
        expectEqual(target.at(2800, .tick), Self.silentResolver)
    }

    @Test func `a gateway that has silenced the name servers is examined again by the next lookup, until names are resolved`()
        throws
    {
        var target = try named(Transcript.unscheduled())
        target.hostState = hop(.silent)
        for (start, id) in [(0, 1), (2_650, 2)] as [(Int64, UInt64)] {
            if start > 0 { expectEqual(target.at(start, .tick), ["resolve \(id) server.example"]) }
            expectEqual(target.at(start + 2100, silent(id, resolver)), ["route? 203.0.113.53"])
            _ = target.at(start + 2100, route(to: resolver))
            let lines = target.at(start + 2650, .neighbor(gateway, .state(.reachable)))
            expectEqual(lines, (start == 0 ? Array(Self.silentGateway.prefix(1)) : Self.silentGateway))
        }
        // Any change of the network can restore the way to the name servers.
        expectEqual(target.at(6000, .localStateChanged), ["resolve 3 server.example"])
        expectEqual(target.at(6010, .found(3, "192.0.2.1")), ["route? 192.0.2.1"])
        _ = target.at(6010, .route(to: "192.0.2.1"))
        expectEqual(target.at(6015, .connected(4)), ["report ok", "up 192.0.2.1 eth0"])
        expectEqual(target.at(7000, .localStateChanged), ["route? 192.0.2.1"])
    }

    @Test func `a change of the network during the examination is answered by another lookup after it`() throws {
        var target = try named()
        target.hostState = hop(.silent)
        _ = target.at(2100, silent(1, resolver))
        expectEqual(target.at(2101, .localStateChanged), [])
        _ = target.at(2101, route(to: resolver))
        expectEqual(target.at(2102, .neighbor(gateway, .state(.reachable))), Self.silentGateway)
        expectEqual(target.tickDue, 2102)
        expectEqual(target.at(2102, .tick), ["resolve 2 server.example"])
    }
}
