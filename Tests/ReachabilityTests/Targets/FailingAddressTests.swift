import Expectations
import Testing

@testable import Reachability

private let first = "192.0.2.1"
private let second = "192.0.2.2"
private let third = "192.0.2.3"

/// A name with several addresses, of which some are connected and fail above TCP.
@Suite struct FailingAddressTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    private static let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"

    /// A target that has just begun the attempt with the next number to the first address.
    private func target(
        _ addresses: String..., url: String = "http://a.example/", settings: ProbeSettings = Transcript.unscheduled()
    ) throws -> Transcript {
        var target = try Transcript(url, settings)
        target.allowsSurvey = true
        _ = target.at(0, .begin)
        find(addresses, in: &target, at: 0)
        return target
    }

    /// Answers the lookup and the route queries of a probe.
    private func find(_ addresses: [String], in target: inout Transcript, at time: Int64) {
        for case .resolve(let request) in target.effects {
            _ = target.at(time, .lookup(LookupAnswer(id: request.id, addresses: addresses.compactMap { IPAddress($0) })))
        }
        for address in addresses { _ = target.at(time, .route(to: address)) }
    }

    private func attempt(_ target: Transcript) throws -> ProbeAttempt { try #require(next(target)) }

    /// The attempt that has just begun.
    private func next(_ target: Transcript) -> ProbeAttempt? {
        for case .connect(let attempt) in target.effects { return attempt }
        return nil
    }

    /// Connects an attempt, whose server then answers. - Returns: the lines of the answer.
    private func answer(
        _ attempt: ProbeAttempt, with response: String, in target: inout Transcript, at time: Int64
    ) throws -> [String] {
        expectEqual(target.at(time, .connected(attempt.id)), [])
        return try target.at(time, .probe(result(of: attempt, response)))
    }

    private func result(of attempt: ProbeAttempt, _ response: String) throws -> ProbeResult {
        let run = try #require(attempt.plan?.stream?.makeRun(deadline: attempt.deadline))
        run.connected(0)
        Array(response.utf8).withUnsafeBytes { run.receive($0, now: 0) }
        run.inputEnded(0)
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: 5_000_000)
        result.levels = run.result
        return result
    }

    @Test(arguments: [(first, second), (second, first), ("2001:db8::1", first), (first, "2001:db8::1")])
    func `an address that answers 503 degrades the target, whatever the order of the addresses`(
        failing: String, working: String
    ) throws {
        for order in [[failing, working], [working, failing]] {
            var target = try target(order[0], order[1])
            var lines: [String] = []
            for time in 1...8 as ClosedRange<Int64> {
                guard let attempt = next(target) else { break }
                lines += try answer(attempt, with: "\(attempt.address)" == failing ? Self.busy : Self.ok, in: &target, at: time)
            }
            expectEqual(
                lines.filter { !$0.hasPrefix("connect") },
                [
                    "report ok", "up \(working) eth0", "degraded http/status \(working) eth0",
                ])
            let isFamily = failing.contains(":") != working.contains(":")
            let family = failing.contains(":") ? "IPv6 is broken and IPv4 works" : "IPv4 is broken and IPv6 works"
            let cause = try #require(target.cause)
            expectEqual(
                cause.detail,
                (isFamily ? family : "1 of 2 addresses fail")
                    + ": at \(failing), a.example answers 503 Busy, not 200-299")
            expectEqual(cause.evidence["address"], .text(failing))
        }
    }

    @Test func `an address that fails is tried after the others in later probes, and once an interval`() throws {
        var target = try target(first, second, settings: ProbeSettings(failAfter: 1))
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 1), ["connect 3 \(second)"])
        try expectEqual(
            answer(attempt(target), with: Self.ok, in: &target, at: 1),
            [
                "report ok", "degraded http/status \(second) eth0", "connect 4 \(first)",
            ])
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 2), [])
        expectEqual(target.at(10_000, .tick), ["resolve 5 a.example"])
        find([first, second], in: &target, at: 10_000)
        try expectEqual(attempt(target).address, IPAddress(second))
        try expectEqual(answer(attempt(target), with: Self.ok, in: &target, at: 10_001), ["report ok", "connect 7 \(first)"])
        try expectEqual(answer(attempt(target), with: Self.ok, in: &target, at: 10_002), ["up \(second) eth0"])
    }

    @Test func `a failing address that redirects to another host is tried first by the next probe, which follows the redirect`()
        throws
    {
        var target = try target(first, second)
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 1), ["connect 3 \(second)"])
        try expectEqual(
            answer(attempt(target), with: Self.ok, in: &target, at: 1),
            [
                "report ok", "up \(second) eth0", "connect 4 \(first)",
            ])
        let redirect = "HTTP/1.1 302 Found\r\nLocation: http://other.example/\r\nContent-Length: 0\r\n\r\n"
        try expectEqual(answer(attempt(target), with: redirect, in: &target, at: 2), [])
        _ = target.at(10_000, .tick)
        find([first, second], in: &target, at: 10_000)
        try expectEqual(attempt(target).address, IPAddress(first))
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 10_001), ["connect 7 \(second)"])
        let lines = try answer(attempt(target), with: Self.ok, in: &target, at: 10_002)
        #expect(lines.contains("degraded http/status \(second) eth0"), "\(lines)")
    }

    @Test func `a target of which all addresses fail is down, after one attempt to each in each probe`() throws {
        var target = try target(first, second)
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 1), ["connect 3 \(second)"])
        try expectEqual(answer(attempt(target), with: "SSH-2.0-x\r\n\r\n", in: &target, at: 1), ["report http/status"])
        expectEqual(target.tickDue, 1)
        _ = target.at(1, .tick)
        find([first, second], in: &target, at: 1)
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 2), ["connect 6 \(second)"])
        expectEqual(
            target.at(3, .failed(6, .connectionRefused)), ["report http/status", "down http/status \(first) eth0"])
    }

    @Test func `while one address is silent after its connection, the next ones are tried in equal parts of the deadline`() throws
    {
        var target = try target(first, second, third)
        expectEqual(target.at(0, .connected(2)), [])
        expectEqual(target.tickDue, 1000)
        expectEqual(target.at(1000, .tick), ["connect 3 \(second)"])
        expectEqual(target.at(1000, .connected(3)), [])
        expectEqual(target.tickDue, 2000)
        expectEqual(target.at(2000, .tick), ["connect 4 \(third)"])
        expectEqual(target.at(2001, .connected(4)), [])
        let lines = try target.at(2100, .probe(result(of: ProbeAttempt(of: 4, in: target), Self.ok)))
        expectEqual(lines, ["cancel 2", "cancel 3", "report ok", "up \(third) eth0", "connect 5 \(first)"])
    }

    @Test func `an address that is silent until the deadline, while the other refuses, is the cause`() throws {
        var target = try target(first, second, settings: ProbeSettings(failAfter: 1))
        _ = target.at(0, .connected(2))
        _ = target.at(1500, .tick)
        expectEqual(target.at(1501, .failed(3, .connectionRefused)), [])
        var levels = LevelResult()
        levels.http = HTTPProbeFacts(response: HTTPResponseFacts())
        (levels.httpEnding, levels.isAtDeadline) = (.deadline, true)
        var result = ProbeResult(id: 2, roundTripNanoseconds: 5_000_000)
        result.levels = levels
        expectEqual(target.at(3000, .probe(result)), ["report http/timeout", "down http/timeout \(first) eth0"])
    }

    @Test func `if one address answers 503 and the other none of its packets, the answer is the cause at the deadline`() throws {
        var target = try target(first, second, settings: ProbeSettings(failAfter: 1))
        try expectEqual(answer(attempt(target), with: Self.busy, in: &target, at: 1), ["connect 3 \(second)"])
        var lines: [String] = []
        while lines.last?.hasPrefix("down") != true, let due = target.tickDue, due <= 3_000 {
            lines = target.at(due, .tick).filter { !$0.hasPrefix("connect") }
        }
        expectEqual(lines.suffix(2), ["report http/status", "down http/status \(first) eth0"])
        expectEqual(lines.filter { $0.hasPrefix("cancel") }.count, 3)
    }

    @Test func `a connection that a network error ends is followed by the next address`() throws {
        var target = try target(first, second)
        _ = target.at(0, .connected(2))
        var levels = LevelResult()
        levels.http = HTTPProbeFacts(response: HTTPResponseFacts())
        levels.httpEnding = .systemError(SystemErrorNumber.hostUnreachable.rawValue)
        var result = ProbeResult(id: 2, roundTripNanoseconds: 5_000_000)
        result.levels = levels
        expectEqual(target.at(1, .probe(result)), ["connect 3 \(second)"])
        try expectEqual(answer(attempt(target), with: Self.ok, in: &target, at: 2).prefix(2), ["report ok", "up \(second) eth0"])
    }

    @Test func `an address that redirects to a host that refuses is followed by the next address`() throws {
        var target = try target(first, second)
        let redirect = "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.9/\r\nContent-Length: 0\r\n\r\n"
        try expectEqual(answer(attempt(target), with: redirect, in: &target, at: 1), ["route? 192.0.2.9"])
        for case .askRoute(let query) in target.effects {
            _ = target.at(1, .route(query, .route(ChosenRoute(interface: 2, source: IPAddress("10.0.0.2")))))
        }
        expectEqual(target.at(2, .failed(3, .connectionRefused)), ["connect 4 \(second)"])
        try expectEqual(answer(attempt(target), with: Self.ok, in: &target, at: 3).prefix(2), ["report ok", "up \(second) eth0"])
    }
}

extension ProbeAttempt {
    /// An attempt that runs in a transcript.
    fileprivate init(of id: UInt64, in target: Transcript) throws {
        self.init(
            id: id, address: IPAddress(v4: 0xc000_0203), port: 80,
            plan: probePlan(target.machine.endpoint, target.machine.settings), deadline: 3_000_000_000)
    }
}
