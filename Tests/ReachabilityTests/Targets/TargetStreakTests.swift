import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"
private let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))

/// The cause that one probe received is kept while later probes of the same streak meet silence.
@Suite struct TargetStreakTests {
    /// A target, and the number of its last attempt.
    private struct Streak {
        var target: Transcript
        var attempt: UInt64 = 0

        init(_ settings: ProbeSettings = Transcript.unscheduled()) throws {
            target = try Transcript("192.0.2.1:443", settings)
            _ = target.at(0, .begin)
        }

        /// Starts the next probe and its attempt.
        mutating func probe(at time: Int64, over interface: UInt32 = 2) {
            if time > 0 { _ = target.at(time, .tick) }
            attempt += 1
            expectEqual(target.at(time, .route(to: server, over: interface)), ["connect \(attempt) 192.0.2.1"])
        }

        mutating func rejected(at time: Int64, _ icmp: (UInt8, UInt8) = (3, 1), over interface: UInt32 = 2) -> [String] {
            probe(at: time, over: interface)
            return target.at(time, .failed(attempt, .hostUnreachable, icmp: icmp, from: "203.0.113.9"))
        }

        /// Lets a probe end at its deadline, three seconds after `time`.
        mutating func silent(
            at time: Int64, _ neighbor: NeighborAnswer = .state(.reachable), over interface: UInt32 = 2
        ) -> [String] {
            probe(at: time, over: interface)
            let key = Neighbor.Key(interface: interface, address: gateway.address)
            _ = target.at(time + 3000, .tick)
            return target.at(time + 3000, .neighbor(key, neighbor))
        }

        /// Lets a probe end at its deadline, and the next one, four seconds later: it shows that the witness's answer is no news of a path that
        /// works again.
        mutating func witnessed(at time: Int64, over interface: UInt32 = 2) -> [String] {
            expectEqual(silent(at: time, over: interface), ["report tcp/timeout"])
            return silent(at: time + 4000, over: interface)
        }
    }

    @Test
    func `the first silent probe with a witness decides nothing, because its last packet may be older than the witness's answer`()
        throws
    {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        streak.target.showsPending = true
        expectEqual(streak.silent(at: 0), ["report tcp/timeout", "unknown pending tcp/timeout"])
        expectEqual(streak.target.tickDue, 3100)
        streak.target.beyond = WitnessBook.State()
        expectEqual(
            streak.silent(at: 3100).last, "unreachable network/upstream-silent 192.0.2.1 eth0")
        streak.target.beyond = nil
        expectEqual(streak.silent(at: 10_000), ["report tcp/timeout"])
        expectEqual(streak.silent(at: 13_100).last, "down tcp/timeout 192.0.2.1 eth0")
    }

    @Test func `a deadline that this process has overslept says nothing of the server, up to three times in a row`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        var time: Int64 = 0
        for attempt in 1...3 as ClosedRange<UInt64> {
            expectEqual(streak.target.at(time, .route(to: server)), ["connect \(attempt) 192.0.2.1"])
            time += 3600
            expectEqual(streak.target.at(time, .tick), ["cancel \(attempt)", "route? 192.0.2.1"])
        }
        expectEqual(streak.target.at(time, .route(to: server)), ["connect 4 192.0.2.1"])
        for _ in 0..<2 { _ = streak.target.at(time + 3600, .tick) }
        expectEqual(streak.target.at(time + 3600, .neighbor(gateway, .state(.reachable))), ["report tcp/timeout"])
    }

    @Test func `a known loss does not explain the silence of several networks`() throws {
        var streak = try Streak()
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        for index in 0..<10 {
            let time = Int64(index) * 10_000
            streak.probe(at: time)
            // Each second probe needs a second SYN.
            let result = ProbeResult(id: streak.attempt, roundTripNanoseconds: 5_000_000, retransmissions: index % 2)
            _ = streak.target.at(time + 5, .probe(result))
        }
        streak.target.beyond = WitnessBook.State(silentNetworks: 1)
        expectEqual(streak.silent(at: 100_000).first, "report quality/loss")
        streak.target.beyond = WitnessBook.State(silentNetworks: 2)
        expectEqual(streak.silent(at: 103_100).first, "report network/upstream-silent")
    }

    @Test func `a router's ICMP error gives the cause while later probes of the streak time out`() throws {
        var streak = try Streak()
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        expectEqual(streak.rejected(at: 0), ["report network/host-unreachable"])
        expectEqual(
            streak.silent(at: 1000), ["report network/host-unreachable", "unreachable network/host-unreachable 192.0.2.1 eth0"])
        expectEqual(streak.target.cause?.evidence["earlier"], .flag(true))
        expectEqual(streak.target.cause?.evidence["hop"], .text("203.0.113.9"))
        for time in [10_000, 20_000, 30_000] as [Int64] {
            expectEqual(streak.silent(at: time), ["report network/host-unreachable"])
        }
        expectEqual(streak.rejected(at: 40_000), ["report network/host-unreachable"])
        expectNil(streak.target.cause?.evidence["earlier"])
    }

    @Test func `a host that answers datagrams refutes an earlier report that it is unreachable`() throws {
        var streak = try Streak()
        _ = streak.rejected(at: 0)
        expectEqual(streak.witnessed(at: 1000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    /// Settings with which one lost result degrades a target, so that its update has the number of them.
    private static func strict(loss: Double = 0.01) -> ProbeSettings {
        var settings = Transcript.unscheduled()
        settings.quality.loss = loss
        return settings
    }

    @Test(arguments: [(0.2, "up", nil), (0.01, "degraded quality/loss", 1)] as [(Double, String, Int?)])
    func `an interruption of one probe is one lost result, and degrades nothing`(limit: Double, status: String, lost: Int?) throws
    {
        var streak = try Streak(Self.strict(loss: limit))
        streak.probe(at: 0)
        expectEqual(streak.target.at(1, .connected(1)).last, "up 192.0.2.1 eth0")
        _ = streak.silent(at: 10_000)
        expectEqual(streak.target.state, .up)
        streak.probe(at: 13_100)
        _ = streak.target.at(13_101, .connected(streak.attempt))
        let cause = streak.target.published?.cause
        expectEqual("\(streak.target.state?.rawValue ?? "")" + (cause.map { " \($0.name)" } ?? ""), status)
        expectEqual(cause?.evidence["lost"], lost.map { .number($0) })
    }

    @Test func `the silent probes of an outage are no loss of the path`() throws {
        var streak = try Streak(Self.strict())
        streak.probe(at: 0)
        _ = streak.target.at(1, .connected(1))
        for time in [10_000, 13_100, 20_000, 30_000] as [Int64] { _ = streak.silent(at: time) }
        expectEqual(streak.target.state, .down)
        streak.probe(at: 40_000)
        expectEqual(streak.target.at(40_001, .connected(streak.attempt)).last, "up 192.0.2.1 eth0")
    }

    @Test func `a packet that was lost before the recovery is no loss of the path`() throws {
        var streak = try Streak(Self.strict())
        streak.probe(at: 0)
        _ = streak.target.at(1, .connected(1))
        for time in [10_000, 13_100, 20_000, 30_000] as [Int64] { _ = streak.silent(at: time) }
        streak.probe(at: 40_000)
        let result = ProbeResult(id: streak.attempt, roundTripNanoseconds: 0, retransmissions: 1)
        expectEqual(streak.target.at(41_024, .probe(result)).last, "up 192.0.2.1 eth0")
    }

    @Test func `a silent attempt is repeated until the target has failed`() throws {
        var streak = try Streak()
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        streak.probe(at: 0)
        expectEqual(streak.target.at(500, .tick), ["connect 2 192.0.2.1"])
        streak.attempt = 2
        _ = streak.target.at(3000, .tick)
        _ = streak.target.at(3000, .neighbor(gateway, .state(.reachable)))
        _ = streak.silent(at: 3100)
        streak.probe(at: 20_000)
        expectEqual(streak.target.at(20_500, .tick), [])
        expectEqual(streak.target.at(21_250, .tick), [])
    }

    @Test func `a probe after the verdict waits for the report that a router sends after three seconds`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        expectEqual(streak.witnessed(at: 0).last, "down tcp/timeout 192.0.2.1 eth0")
        for time in [10_000, 20_000] as [Int64] {
            streak.probe(at: time)
            expectEqual(streak.target.at(time + 2300, .tick), [])
            _ = streak.target.machine.handle(.tick, in: streak.target.host.localState, at: Transcript.moment(time + 3000))
            expectEqual(streak.target.tickDue, time + 3090)
            expectEqual(
                streak.target.at(time + 3070, .failed(streak.attempt, .hostUnreachable, icmp: (3, 1), from: "203.0.113.9"))
                    .first, "report network/host-unreachable")
        }
    }

    @Test func `a router's later ICMP error replaces the earlier one`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        expectEqual(
            streak.rejected(at: 10_000, (3, 13)),
            [
                "report network/admin-prohibited", "unreachable network/admin-prohibited 192.0.2.1 eth0",
            ])
        expectEqual(streak.silent(at: 20_000), ["report network/admin-prohibited"])
    }

    @Test func `a gateway without answers keeps a router's cause for a minute, because it may be limited in its messages`() throws
    {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        for time: Int64 in [0, 1_000] { _ = streak.rejected(at: time) }
        streak.target.hostState = HopBook.State(
            isAlive: false, reply: HostReply(.silent), hasAnswered: true, silentSince: 10_000_000_000)
        expectEqual(streak.silent(at: 10_000), ["report network/host-unreachable"])
        expectEqual(streak.silent(at: 60_000), ["report network/host-unreachable"])
        expectEqual(
            streak.silent(at: 70_000), ["report neighbor/gateway-silent", "unreachable neighbor/gateway-silent 192.0.2.1 eth0"])
    }

    @Test func `a gateway that the kernel asks in vain is silent at once, also after a router's error`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        _ = streak.rejected(at: 0)
        expectEqual(
            streak.silent(at: 10_000, .state(.failed)),
            ["report neighbor/gateway-silent", "unreachable neighbor/gateway-silent 192.0.2.1 eth0"])
    }

    @Test func `a success ends the streak of a router's error`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        streak.probe(at: 10_000)
        expectEqual(streak.target.at(10_000, .connected(streak.attempt)), ["report ok", "up 192.0.2.1 eth0"])
        expectEqual(streak.witnessed(at: 20_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a refusal by the host ends the streak of a router's error`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        streak.probe(at: 10_000)
        expectEqual(
            streak.target.at(10_000, .failed(streak.attempt, .connectionRefused)),
            ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        expectEqual(streak.witnessed(at: 20_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a resume ends the streak of a router's error`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        _ = streak.target.at(5000, .resumed)
        streak.attempt += 1
        _ = streak.target.at(5000, .route(to: server))
        _ = streak.target.at(8000, .tick)
        expectEqual(streak.target.at(8000, .neighbor(gateway, .state(.reachable))), ["report tcp/timeout"])
        expectEqual(streak.silent(at: 8100), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a lost route ends the streak of a router's error`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        _ = streak.target.at(4000, .localStateChanged)
        expectEqual(streak.target.at(4000, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
        expectEqual(streak.witnessed(at: 10_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `another route ends the streak, even if the former route comes back`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.rejected(at: 0)
        expectEqual(streak.witnessed(at: 10_000, over: 3), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 wlan0"])
        expectEqual(streak.silent(at: 20_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test(arguments: [.unknown, .absent, .state(.stale), .state(.probe)] as [NeighborAnswer])
    func `a silent gateway remains the cause if its neighbor entry says nothing new`(neighbor: NeighborAnswer) throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        // The gateway answers no queries, dead or alive.
        streak.target.hostState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        expectEqual(
            streak.silent(at: 0, .state(.failed)),
            [
                "report neighbor/gateway-silent", "unreachable neighbor/gateway-silent 192.0.2.1 eth0",
            ])
        expectEqual(streak.silent(at: 10_000, neighbor), ["report neighbor/gateway-silent"])
    }

    @Test func `a gateway that has died while its neighbor entry is reachable is silent after two probes`() throws {
        var streak = try Streak()
        streak.probe(at: 0)
        _ = streak.target.at(0, .connected(streak.attempt))
        streak.target.hostState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: true)
        expectEqual(streak.silent(at: 10_000), ["report neighbor/gateway-silent"])
        expectEqual(
            streak.silent(at: 13_100),
            [
                "report neighbor/gateway-silent", "unreachable neighbor/gateway-silent 192.0.2.1 eth0",
            ])
    }

    @Test func `a router that reports and then exceeds its rate of ICMP remains the cause`() throws {
        var streak = try Streak()
        _ = streak.rejected(at: 0, (3, 13))
        streak.target.hostState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: true)
        expectEqual(
            streak.silent(at: 1),
            [
                "report network/admin-prohibited", "unreachable network/admin-prohibited 192.0.2.1 eth0",
            ])
    }

    @Test func `without a witness, silence is unreachable until somebody behind the first hop answers`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        streak.target.beyond = WitnessBook.State()
        let upstream = "network/upstream-silent"
        expectEqual(streak.silent(at: 0), ["report \(upstream)", "unreachable \(upstream) 192.0.2.1 eth0"])
        streak.target.beyond = nil
        expectEqual(streak.witnessed(at: 10_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
        // Routers limit their answers: two searches that find nothing change nothing, a third one does.
        for (time, empty) in [(20_000, 1), (30_000, 2)] as [(Int64, Int)] {
            streak.target.beyond = WitnessBook.State(emptySearches: empty)
            expectEqual(streak.silent(at: time), ["report tcp/timeout"])
            expectEqual(streak.target.cause?.evidence["earlier"], .flag(true))
        }
        streak.target.beyond = WitnessBook.State(emptySearches: 3)
        expectEqual(streak.silent(at: 40_000), ["report \(upstream)", "unreachable \(upstream) 192.0.2.1 eth0"])
        // The former witness is forgotten.
        streak.target.beyond = WitnessBook.State()
        expectEqual(streak.silent(at: 50_000), ["report \(upstream)"])
    }

    @Test func `a router's report about another target is the cause until somebody answers, also when it reports no more`() throws
    {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: false)
        streak.target.beyond = WitnessBook.State()
        let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: 0, offender: IPAddress("203.0.113.9"))
        streak.target.hostState.report = HopBook.Report(
            target: IPAddress(v4: 0xc000_0202), port: 443, code: .netUnreachable, reporter: reporter, time: 0)
        _ = streak.silent(at: 0)
        expectEqual(streak.silent(at: 10_000), ["report network/net-unreachable"])
        streak.target.hostState.report = nil
        expectEqual(streak.silent(at: 60_000), ["report network/net-unreachable"])
        expectEqual(streak.target.cause?.evidence["earlier"], .flag(true))
        // A witness: the router forwards again.
        streak.target.beyond = nil
        expectEqual(streak.silent(at: 70_000), ["report tcp/timeout"])
        streak.target.beyond = WitnessBook.State()
        expectEqual(streak.silent(at: 74_000).first, "report network/upstream-silent")
    }

    @Test func `a host that is the only witness is asked in every probe, and stays one`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        streak.target.targetState = HopBook.State(isAlive: true, reply: HostReply(.answered), hasAnswered: true)
        streak.target.beyond = WitnessBook.State(emptySearches: 9)
        expectEqual(streak.witnessed(at: 0).last, "down tcp/timeout 192.0.2.1 eth0")
        for time in [10_000, 20_000, 30_000] as [Int64] { expectEqual(streak.silent(at: time), ["report tcp/timeout"]) }
        streak.target.targetState = HopBook.State(isAlive: false, reply: HostReply(.silent), hasAnswered: true)
        expectEqual(streak.silent(at: 40_000).last, "unreachable network/upstream-silent 192.0.2.1 eth0")
    }

    @Test func `a report about another port does not change the verdict of a server whose host is alive`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress("203.0.113.9"))
        func report(port: UInt16) -> HopBook.Report {
            HopBook.Report(
                target: IPAddress(v4: 0xc000_0202), port: port, code: .adminProhibited, reporter: reporter, time: 0)
        }
        streak.target.hostState.report = report(port: 80)
        expectEqual(streak.witnessed(at: 0), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
        // The host is not asked any more.
        expectEqual(streak.silent(at: 10_000), ["report tcp/timeout"])
        streak.target.hostState.report = report(port: 443)
        let prohibited = "network/admin-prohibited"
        expectEqual(streak.silent(at: 20_000), ["report \(prohibited)", "unreachable \(prohibited) 192.0.2.1 eth0"])
        // The host is asked again, and is alive.
        expectEqual(streak.silent(at: 30_000), ["report \(prohibited)"])
    }

    @Test func `a server is noted when it answers, one of this machine is not`() throws {
        func notes(_ kind: Route.Kind, over interface: UInt32, gateway: String? = nil) throws -> [TargetMachine.Effect] {
            var target = try Transcript("192.0.2.1:443")
            _ = target.at(0, .begin)
            _ = target.at(0, .route(to: server, over: interface, gateway: gateway, kind: kind))
            _ = target.at(5, .connected(1))
            return target.effects.filter { if case .noteAlive = $0 { true } else { false } }
        }
        let proof = HopBook.Proof.target(try #require(IPAddress(server)), port: 443)
        let onLink = Neighbor.Key(interface: 2, address: IPAddress(v4: 0xc000_0201))
        try expectEqual(notes(.unicast, over: 2), [.noteAlive(onLink, by: proof)])
        try expectEqual(notes(.unicast, over: 2, gateway: "10.0.0.1"), [.noteAlive(gateway, by: proof)])
        let tunnel = Neighbor.Key(interface: 4, address: IPAddress(v4: 0))
        try expectEqual(notes(.unicast, over: 4), [.noteAlive(tunnel, by: proof)])
        try expectEqual(notes(.local, over: 1), [])
    }

    @Test(arguments: [(HostReply.Outcome.silent, "unreachable firewall/local-drop"), (.answered, "down tcp/timeout")])
    func `this machine is asked itself if its server is silent`(outcome: HostReply.Outcome, line: String) throws {
        var target = try Transcript("127.0.0.1:443", ProbeSettings(failAfter: 1))
        target.hostState = HopBook.State(isAlive: outcome == .answered, reply: HostReply(outcome), hasAnswered: false)
        _ = target.at(0, .begin)
        expectEqual(
            target.at(0, .route(to: "127.0.0.1", over: 1, gateway: nil, kind: .local, source: "127.0.0.1")),
            ["connect 1 127.0.0.1"])
        expectEqual(target.at(3000, .tick).last, "\(line) 127.0.0.1 lo")
    }

    @Test func `a reachable gateway is no longer the cause`() throws {
        var streak = try Streak(ProbeSettings(failAfter: 1))
        _ = streak.silent(at: 0, .state(.failed))
        expectEqual(streak.witnessed(at: 10_000), ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
        expectEqual(streak.silent(at: 20_000, .absent), ["report tcp/timeout"])
    }

    // MARK: ICMP errors of this machine

    @Test func `on host unreachable from this machine, the neighbor is queried before it is the cause`() throws {
        for (answer, cause) in [
            (.state(.failed), "neighbor/gateway-silent"), (.state(.incomplete), "neighbor/gateway-silent"),
            (.unknown, "neighbor/gateway-silent"), (.absent, "firewall/local-reject"),
            (.state(.reachable), "firewall/local-reject"), (.state(.stale), "firewall/local-reject"),
        ] as [(NeighborAnswer, String)] {
            var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
            _ = target.at(0, .begin)
            _ = target.at(0, .route(to: server))
            expectEqual(
                target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2")), ["neighbor? 10.0.0.1 on 2"])
            expectEqual(
                target.at(5, .neighbor(gateway, answer)), ["report \(cause)", "unreachable \(cause) 192.0.2.1 eth0"],
                "\(answer)")
        }
    }

    @Test(arguments: [NeighborAnswer.state(.failed), .state(.incomplete), .state(.reachable)])
    func `with several gateways, any of them may be the silent one`(other: NeighborAnswer) throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
        let second = Neighbor.Key(interface: 3, address: IPAddress(v4: 0x0a00_0101))
        target.nextHops = [gateway, second].map { Route.NextHop(interface: $0.interface, gateway: $0.address) }
        let isSilent = other != .state(.reachable)
        // An ICMP error of this machine, and then silence.
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        _ = target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2"))
        expectEqual(target.at(5, .neighbor(gateway, .state(.reachable))), ["neighbor? 10.0.1.1 on 3"])
        let word = isSilent ? "neighbor/gateway-silent" : "firewall/local-reject"
        let place = isSilent ? "192.0.2.1 wlan0" : "192.0.2.1 eth0"
        expectEqual(target.at(5, .neighbor(second, other)), ["report \(word)", "unreachable \(word) \(place)"])
        if isSilent { expectEqual(target.cause?.evidence["gateway"], .text("10.0.1.1")) }

        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(13_000, .tick)
        _ = target.at(13_000, .neighbor(gateway, .state(.reachable)))
        let silence = isSilent ? "neighbor/gateway-silent" : "tcp/timeout"
        expectEqual(target.at(13_000, .neighbor(second, other)).first, "report \(silence)")
    }

    @Test func `a silent gateway is found even if the kernel named the link of a modem, which has no gateway`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
        target.nextHops = [Route.NextHop(interface: 3), Route.NextHop(interface: 2, gateway: gateway.address)]
        let modem = Neighbor.Key(interface: 3, address: IPAddress(v4: 0xc000_0201))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server, over: 3, gateway: nil))
        _ = target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2"))
        expectEqual(target.at(5, .neighbor(modem, .absent)), ["neighbor? 10.0.0.1 on 2"])
        let word = "neighbor/gateway-silent"
        expectEqual(target.at(5, .neighbor(gateway, .state(.failed))), ["report \(word)", "unreachable \(word) 192.0.2.1 eth0"])
    }

    @Test func `a router's ICMP error and a refusal query no neighbor`() throws {
        for (number, icmp, from) in [
            (.hostUnreachable, (3, 1), "203.0.113.9"), (.connectionRefused, (3, 3), "10.0.0.2"),
        ] as [(SystemErrorNumber, (UInt8, UInt8), String)] {
            var target = try Transcript("192.0.2.1:443")
            _ = target.at(0, .begin)
            _ = target.at(0, .route(to: server))
            #expect(target.at(5, .failed(1, number, icmp: icmp, from: from)).first?.hasPrefix("report") == true)
        }
    }
}
