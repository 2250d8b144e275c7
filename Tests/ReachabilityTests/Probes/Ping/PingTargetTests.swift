import Expectations
import Testing

@testable import Reachability

/// The machine of a `ping://` target.
@Suite struct PingTargetTests {
    private static let server = "192.0.2.1"

    /// A target whose first request is sent.
    private func target(_ settings: ProbeSettings = Transcript.unscheduled()) throws -> Transcript {
        var target = try Transcript("ping://192.0.2.1", settings)
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: Self.server)), ["connect 1 192.0.2.1"])
        return target
    }

    private func answer(_ id: UInt64, _ roundTrips: [Int64]) -> TargetMachine.Event {
        var answers = EchoAnswers()
        for (index, time) in roundTrips.enumerated() {
            answers.noteSent()
            if time > 0 { _ = answers.receive(index, roundTrip: time) }
        }
        var result = ProbeResult(
            id: id, roundTripNanoseconds: answers.mean ?? 0, retransmissions: answers.sent - answers.received)
        var levels = LevelResult()
        levels.answerNanoseconds = answers.mean
        levels.facts[EchoFacts.self] = EchoFacts(answers)
        result.levels = levels
        return .probe(result)
    }

    @Test func `a target sends the burst of its settings, and is up with one answer`() throws {
        var settings = Transcript.unscheduled()
        settings.ping.count = 3
        settings.ping.hopLimit = 9
        settings.ping.forbidsFragments = true
        var target = try target(settings)
        guard case .connect(let attempt)? = target.effects.last, case .echo(let burst)? = attempt.plan?.plan.transport else {
            Issue.record("no burst: \(target.effects)")
            return
        }
        #expect(attempt.port == 0 && burst.count == 3 && burst.hopLimit == 9 && burst.forbidsFragments && burst.size == 56)
        let lines = target.at(40, answer(1, [5_000_000, 0, 7_000_000]))
        expectEqual(lines, ["report ok", "up 192.0.2.1 eth0"])
        let report = try #require(target.effects.compactMap { if case .report(let report) = $0 { report } else { nil } }.last)
        #expect(report.roundTrip == .milliseconds(6) && report.responseTime == .milliseconds(6) && report.lostPackets == 1)
    }

    @Test func `a host that is alive and answers no pings is at fault`() throws {
        var target = try target()
        target.targetState = HopBook.State(isAlive: true, reply: HostReply(.answered), hasAnswered: true)
        _ = target.at(3000, .tick)
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(3000, .neighbor(gateway, .state(.reachable))), ["report network/no-echo"])
        expectEqual(target.cause?.detail, "192.0.2.1 does not answer pings, although the host is alive")
        expectNil(target.cause?.evidence["port"])
        _ = target.at(7000, .tick)
        expectEqual(target.at(7000, .route(to: Self.server)).last, "connect 2 192.0.2.1")
        _ = target.at(10_000, .tick)
        expectEqual(
            target.at(10_000, .neighbor(gateway, .state(.reachable))),
            ["report network/no-echo", "down network/no-echo 192.0.2.1 eth0"])
    }

    @Test func `a router that reports why a ping does not arrive is the cause`() throws {
        var target = try target()
        let lines = target.at(5, .failed(1, .hostUnreachable, call: "answer", icmp: (3, 1), from: "203.0.113.9"))
        expectEqual(lines.first, "report network/host-unreachable")
        expectEqual(target.cause?.evidence["hop"], .text("203.0.113.9"))
    }

    @Test(arguments: [SystemErrorNumber.notPermitted, .accessDenied])
    func `a process that may not send pings says how to allow it`(number: SystemErrorNumber) throws {
        var target = try target()
        let lines = target.at(5, .failed(1, number, call: "socket"))
        expectEqual(lines, ["report local/not-permitted", "unreachable local/not-permitted 192.0.2.1 eth0"])
        let detail = target.cause?.detail ?? ""
        #expect(detail.contains("net.ipv4.ping_group_range") && detail.contains("CAP_NET_RAW"))
    }

    @Test func `the packet filter of this machine that refuses a ping is the cause`() throws {
        var target = try target()
        expectEqual(target.at(5, .failed(1, .notPermitted, call: "sendto")).first, "report firewall/local-reject")
    }

    @Test(arguments: [
        ("ping://host:80", "port: a ping target has none; write ping://host"),
        ("ping://host/path", "port: '/path' does not belong to a PING target; write ping://HOST"),
        ("ping://", "host: is empty"), ("ping://u:p@host", "host: a user name or password does not belong to a PING target"),
        ("png://host", "scheme: 'png' is not known; write HOST:PORT, or tcp://, "),
    ])
    func `a target that is no host is refused`(text: String, message: String) {
        do {
            _ = try Endpoint(text)
            Issue.record("accepted")
        } catch { expectEqual(error.description.hasPrefix(message), true, "\(error)") }
    }

    @Test(arguments: ["ping://example.com", "ping://192.0.2.1", "ping://[fe80::1%eth0]", "PING://Example.com"])
    func `the text of a target stays, and it has no port`(text: String) throws {
        let endpoint = try Endpoint(text)
        #expect(endpoint.scheme == .ping && endpoint.port == 0 && endpoint.text == text)
        try expectEqual(Endpoint(text.lowercased()), endpoint)
    }
}
