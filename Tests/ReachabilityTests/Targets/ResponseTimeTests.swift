import Certificates
import Expectations
import Pacing
import Testing

@testable import Reachability

/// The response time: from the start of the connection that answered to the complete answer, redirects included and names apart.
@Suite struct ResponseTimeTests {
    private static let first = "192.0.2.1"
    private static let second = "192.0.2.2"
    private static let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    private static func milliseconds(_ duration: Duration?) -> Int64? { duration.map { $0.saturatingNanoseconds / 1_000_000 } }

    private static func report(_ target: Transcript) throws -> ProbeReport {
        for case .report(let report) in target.effects { return report }
        throw Missing()
    }

    private static func update(_ target: Transcript) throws -> ServerUpdate {
        for case .publish(let update) in target.effects { return update }
        throw Missing()
    }

    private struct Missing: Error {}

    private static func attempt(_ target: Transcript) throws -> ProbeAttempt {
        for case .connect(let attempt) in target.effects { return attempt }
        throw Missing()
    }

    /// Lets a connection be established at a time, its first byte arrive at a second one, and the rest at a third one.
    private static func answer(
        _ target: inout Transcript, _ attempt: ProbeAttempt, connected: Int64, firstByte: Int64, end: Int64,
        _ response: String = page
    ) throws {
        _ = target.at(connected, .connected(attempt.id))
        let run = try #require(attempt.plan?.stream?.makeRun(deadline: attempt.deadline))
        run.connected(connected * 1_000_000)
        let bytes = Array(response.utf8)
        bytes[..<10].withUnsafeBytes { run.receive($0, now: firstByte * 1_000_000) }
        bytes[10...].withUnsafeBytes { run.receive($0, now: end * 1_000_000) }
        run.inputEnded(end * 1_000_000)
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: 5_000_000)
        result.levels = run.result
        _ = target.at(end, .probe(result))
    }

    @Test func `the response time of a tcp target is the time of the connection that answered`() throws {
        var target = try Transcript("\(Self.first):22")
        _ = target.at(0, .begin)
        _ = target.at(10, .route(to: Self.first))
        let lost = try Self.attempt(target)
        // The second attempt, while the first is silent.
        var due: Int64 = 0
        for _ in 0..<20 where due == 0 || !target.effects.contains(where: { if case .connect = $0 { true } else { false } }) {
            // Times are whole milliseconds, and the next one is due within one.
            due = try #require(target.tickDue) + 1
            _ = target.at(due, .tick)
        }
        let attempt = try Self.attempt(target)
        #expect(attempt.id != lost.id && due > 200)
        _ = target.at(due + 12, .connected(attempt.id))
        let report = try Self.report(target)
        expectEqual(Self.milliseconds(report.responseTime), 12)
        expectEqual(Self.milliseconds(report.duration(of: .connect)), 12)
        expectNil(report.duration(of: .firstByte))
        try expectEqual(Self.milliseconds(Self.update(target).responseTime), 12)
    }

    @Test func `the response time of an http target is the sum of its phases without the name`() throws {
        var target = try Transcript("http://a.example/")
        _ = target.at(0, .begin)
        _ = target.at(100, .found(1, Self.first))
        _ = target.at(100, .route(to: Self.first))
        try Self.answer(&target, Self.attempt(target), connected: 120, firstByte: 150, end: 157)
        let report = try Self.report(target)
        expectEqual(
            ProbePhase.allCases.map { Self.milliseconds(report.duration(of: $0)) }, [100, 20, nil, 30, 7])
        expectEqual(Self.milliseconds(report.responseTime), 57)
        try expectEqual(Self.milliseconds(Self.update(target).responseTime), 57)
    }

    @Test func `a redirect to another host adds its connection and its exchange, and not the lookup of its name`() throws {
        var target = try Transcript("http://a.example/")
        _ = target.at(0, .begin)
        _ = target.at(0, .found(1, Self.first))
        _ = target.at(0, .route(to: Self.first))
        let redirect = "HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\nContent-Length: 0\r\n\r\n"
        try Self.answer(&target, Self.attempt(target), connected: 20, firstByte: 50, end: 51, redirect)
        // The lookup takes 400 ms.
        _ = target.at(451, .found(3, Self.second))
        _ = target.at(451, .route(to: Self.second))
        try Self.answer(&target, Self.attempt(target), connected: 460, firstByte: 480, end: 483)
        let report = try Self.report(target)
        expectEqual(Self.milliseconds(report.duration(of: .connect)), 29)
        expectEqual(Self.milliseconds(report.duration(of: .firstByte)), 50)
        expectEqual(Self.milliseconds(report.duration(of: .transfer)), 4)
        expectEqual(Self.milliseconds(report.responseTime), 83)
    }

    @Test func `a probe that fails has no response time, and neither has its target`() throws {
        var target = try Transcript("http://a.example/", ProbeSettings(failAfter: 1))
        _ = target.at(0, .begin)
        _ = target.at(0, .found(1, Self.first))
        _ = target.at(0, .route(to: Self.first))
        let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
        try Self.answer(&target, Self.attempt(target), connected: 20, firstByte: 50, end: 51, busy)
        let report = try Self.report(target)
        #expect(report.responseTime == nil && Self.milliseconds(report.duration(of: .firstByte)) == 30)
        let update = try Self.update(target)
        #expect(update.statusName == .down && update.responseTime == nil && update.roundTrip == nil)
    }

    @Test func `a target whose median response time reaches the limit is degraded`() throws {
        var settings = ProbeSettings(interval: .seconds(1))
        settings.quality.responseTime = .milliseconds(200)
        settings.quality.window = 5
        var target = try Transcript("http://\(Self.first)/", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: Self.first))
        var states: [StatusName?] = []
        var start: Int64 = 0
        for _ in 0..<4 {
            try Self.answer(&target, Self.attempt(target), connected: start + 5, firstByte: start + 300, end: start + 301)
            states.append(target.state)
            start = try #require(target.tickDue)
            _ = target.at(start, .tick)
            _ = target.at(start, .route(to: Self.first))
        }
        expectEqual(states, [.up, .up, .degraded, .degraded])
        let cause = try #require(target.published?.cause)
        #expect(cause.layer == .quality && cause.code == .response)
        expectEqual(cause.detail, "the median response time is 301 ms (limit 200 ms)")
        expectEqual(cause.evidence["response_median_us"], .number(301_000))
        expectEqual(cause.evidence["response_limit_us"], .number(200_000))
        let phases = ["connect", "tls", "first_byte", "transfer"].map { cause.evidence["last_\($0)_us"] }
        expectEqual(phases, [.number(5_000), nil, .number(295_000), .number(1_000)])
    }

    // MARK: The certificate

    @Test(
        arguments: [
            (86_400 * 3, 3), (86_400 * 3 - 1, 2), (86_399, 0), (0, 0), (-1, -1), (-86_400, -1), (-86_401, -2),
            (Int64.max, 106_751_991_167_300),
        ] as [(Int64, Int)])
    func `the days of a certificate are rounded down, and negative if it has expired`(end: Int64, days: Int) {
        let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 0)
        expectEqual(CertificateValidity.daysLeft(until: end, at: moment), days)
        expectEqual(CertificateValidity.daysLeft(until: CertificateValidity.end(daysLeft: days, at: moment), at: moment), days)
    }

    @Test func `the certificate of a target is that of its last handshake, and it is kept while there is none`() throws {
        var facts = TLSHandshakeFacts(serverName: "a")
        facts.certificate = TLSCertificateFacts(
            subject: "a", issuer: "b", isSelfIssued: false, names: ["a"], nameCount: 1, notBefore: 0, notAfter: 864_000,
            sha256: "00",
            serialNumber: "1")
        (facts.chainNotAfter, facts.isComplete, facts.nameMatches) = (432_000, true, true)
        var target = try Transcript("tls://\(Self.first)", ProbeSettings(failAfter: 1))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: Self.first))
        let attempt = try Self.attempt(target)
        _ = target.at(5, .connected(attempt.id))
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: 5_000_000)
        var levels = LevelResult()
        (levels.tls, levels.handshakeEnd, levels.handshakeNanoseconds) = (facts, .completed, 9_000_000)
        result.levels = levels
        _ = target.at(15, .probe(result))
        let update = try Self.update(target)
        #expect(update.certificateEnd == 432_000 && update.certificateDaysLeft(at: update.moment) == 4)
        expectEqual(Self.milliseconds(update.responseTime), 14)
        let due = try #require(target.tickDue)
        _ = target.at(due, .tick)
        _ = target.at(due, .route(to: Self.first))
        try _ = target.at(due, .failed(Self.attempt(target).id, .connectionRefused))
        try expectEqual(Self.update(target).certificateEnd, 432_000)
        var plain = try Self.report(target)
        expectNil(plain.certificateEnd)
        plain.endpoint = try Endpoint("\(Self.first):443")
        plain.levels = result.levels
        expectNil(plain.certificateEnd)
    }
}
