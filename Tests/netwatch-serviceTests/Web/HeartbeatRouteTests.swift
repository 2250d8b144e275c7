import EventLoop
import Expectations
import Foundation
import NIOCore
import Reachability
import Testing

@testable import netwatch_service

/// The reports of jobs at the web server.
@Suite(.timeLimit(.minutes(5))) struct HeartbeatRouteTests {
    private static let token = "0123456789abcdef0123456789abcdef"
    private static let moment = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 1_785_672_000_000_000_000)

    private static func request(
        _ path: String, _ query: String = "", _ authorization: String? = nil, _ content: String = ""
    ) throws -> HeartbeatRequest {
        try HeartbeatRequest(
            path: path, query: query, authorization: authorization, content: ByteBuffer(string: content), at: moment)
    }

    @Test(
        arguments: [
            ("backup/\(token)", nil, .succeeded), ("backup", "Bearer \(token)", .succeeded),
            ("backup/start", "bearer  \(token)", .started),
            ("backup/\(token)/start", nil, .started), ("backup/\(token)/fail", nil, .failed(code: nil)),
            ("backup/0", "Bearer \(token)", .succeeded), ("backup/\(token)/255", nil, .failed(code: 255)),
            ("b%61ckup/\(token)/1", nil, .failed(code: 1)),
        ] as [(String, String?, HeartbeatReport.Kind)])
    func `a path has the name, the token and what the job says`(
        path: String, authorization: String?, kind: HeartbeatReport.Kind
    ) throws {
        let request = try Self.request(path, "", authorization, "two\nlines")
        #expect(request.name == "backup" && request.token == Self.token)
        expectEqual(request.report, HeartbeatReport(kind, text: "two\nlines"))
    }

    @Test(arguments: [
        ("", "", 404), ("a/b/c/d", "", 404), ("a/b/c", "", 404), ("a/b/256", "", 400), ("a/b/99999999999999999999", "", 400),
        ("a/b", "at=yesterday", 400), ("a/b", "at=2026-08-02T12:00:00", 400), ("a/b", "at=2026-08-02T12:01:01Z", 400),
        ("a/b", "at=1&at=2", 400), ("a/b/", "", 400), ("a/b", "at=1970-01-01T00:00:00Z", 400), ("a/b/word", "", 404),
    ])
    func `a request that says nothing is refused, and no answer has its path`(path: String, query: String, status: Int) {
        let problem = #expect(throws: WebProblem.self) { try Self.request(path, query) }
        expectEqual(problem?.status, status)
        if let detail = problem?.detail { #expect(!detail.contains("a/")) }
    }

    @Test func `a report may be of an earlier time`() throws {
        let request = try Self.request("a/b", "at=2026-08-02T11:59:59.500Z")
        expectEqual(request.report.time, 1_785_671_999_500_000_000)
        // The plus sign of an offset is a space in a query.
        let local = try Self.request("a/b", "at=2026-08-02T13:59:59+02:00")
        expectEqual(local.report.time, 1_785_671_999_000_000_000)
    }

    // MARK: At the server

    private struct Received: Hashable, Sendable {
        var report: HeartbeatReport
        var target: TargetID
    }

    private static func site(_ received: Locked<[Received]>) throws -> Site {
        let site = try Site()
        let digest = try #require(HeartbeatDesk.digest(of: token))
        site.heartbeats.set(["backup": [.init(target: TargetID(7), digest: digest)]])
        site.heartbeats.deliver { report, id in received.withLock { $0.append(Received(report: report, target: id)) } }
        return site
    }

    @Test func `a job reports by GET and by POST, with a text of which the end is kept`() async throws {
        let received = Locked<[Received]>([])
        let site = try Self.site(received)
        let path = "/api/v1/heartbeat/Backup/\(Self.token)"
        let authorization = "Authorization: Bearer \(Self.token)"
        for (method, target, body) in [
            ("GET", path, ""), ("POST", path, "done"), ("POST", "/api/v1/heartbeat/backup/start", ""),
            ("POST", "\(path)/3", String(repeating: "x", count: 100_000) + "end"),
        ] {
            let field = target.contains(Self.token) ? "Accept: */*" : authorization
            let response = try await site.with { try $0.client().get(target, method: method, body: body, field) }
            #expect(response.status == 200 && response.body == "ok\n", "\(method) \(target): \(response)")
        }
        let reports = received.withLock { $0 }
        expectEqual(reports.map(\.report.kind), [.succeeded, .succeeded, .started, .failed(code: 3)])
        expectEqual(reports.map(\.report.text.utf8.count), [0, 4, 0, HeartbeatReport.textLimit])
        #expect(reports.last?.report.text.hasSuffix("xend") == true)
        #expect(reports.allSatisfy { $0.target == TargetID(7) } && site.heartbeats.takeChange() && !site.heartbeats.takeChange())
        try await site.stop()
    }

    @Test func `an unknown name and a wrong token have one answer, which has neither`() async throws {
        let received = Locked<[Received]>([])
        let site = try Self.site(received)
        var answers: Set<String> = []
        for path in [
            "backup/\(Self.token.dropLast())", "backup", "none/\(Self.token)", "backup/\(Self.token)x", "none", "backup/%ff",
        ] {
            let response = try await site.with { try $0.client().get("/api/v1/heartbeat/\(path)") }
            expectEqual(response.status, 404)
            answers.insert(response.body)
        }
        expectEqual(answers, [#"{"error":"not_found","detail":"no job has this name and this token"}"#])
        let long = try await site.with { try $0.client().get("/api/v1/heartbeat/a/b/\(Self.token)/d") }
        #expect(long.status == 404 && !long.body.contains(Self.token))
        expectEqual(received.withLock { $0.count }, 0)
        try await site.stop()
    }

    @Test func `other methods, other sites and endless contents are refused`() async throws {
        let received = Locked<[Received]>([])
        let site = try Self.site(received)
        let path = "/api/v1/heartbeat/backup/\(Self.token)"
        for method in ["HEAD", "PUT", "DELETE"] {
            let response = try await site.with { try $0.client().get(path, method: method) }
            #expect(response.status == 405 && response.fields["allow"] == "GET, POST", "\(method): \(response)")
        }
        let other = try await site.with { try $0.client().get(path, "Sec-Fetch-Site: cross-site") }
        expectEqual(other.status, 403)
        let large = try await site.with { try $0.client().get(path, method: "POST", "Content-Length: 5000000000") }
        expectEqual(large.status, 413)
        expectEqual(received.withLock { $0.count }, 0)
        try await site.stop()
    }

    @Test func `a job that reports all the time is slowed, and the others are not`() throws {
        let received = Locked<[Received]>([])
        let desk = HeartbeatDesk()
        let digest = try #require(HeartbeatDesk.digest(of: Self.token))
        desk.set(["a": [.init(target: TargetID(1), digest: digest)], "b": [.init(target: TargetID(2), digest: digest)]])
        let request = try Self.request("a/\(Self.token)")
        let starting = #expect(throws: WebProblem.self) { try desk.receive(request, at: Self.moment) }
        expectEqual(starting?.status, 503)
        desk.deliver { report, id in received.withLock { $0.append(Received(report: report, target: id)) } }
        var refused = 0
        for _ in 0..<100 {
            do { try desk.receive(request, at: Self.moment) } catch { refused += error.status == 429 ? 1 : 0 }
        }
        #expect(refused >= 70 && received.withLock { $0.count } == 100 - refused)
        try desk.receive(Self.request("b/\(Self.token)"), at: Self.moment)
        try desk.receive(request, at: Self.moment.advanced(by: .seconds(1)))
        expectEqual(received.withLock { $0.count }, 102 - refused)
    }

    @Test func `a service that ends refuses reports, so that clients repeat them`() throws {
        let desk = HeartbeatDesk()
        let digest = try #require(HeartbeatDesk.digest(of: Self.token))
        desk.set(["a": [.init(target: TargetID(1), digest: digest)]])
        desk.deliver { _, _ in Issue.record("delivered") }
        desk.close()
        let problem = #expect(throws: WebProblem.self) { try desk.receive(Self.request("a/\(Self.token)"), at: Self.moment) }
        expectEqual(problem?.status, 503)
    }

    @Test func `what is known of jobs is a row each, and damaged ones are left out`() throws {
        let memory = HeartbeatMemory(
            schedule: "every 5", status: "down", code: "failed", sign: 5, ended: 5, started: nil, expected: 9, missedUntil: nil,
            hasOverrun: false, last: HeartbeatReport(.failed(code: 2), text: "\"\u{0}", time: 4))
        let memories = [
            HeartbeatMemories.Job(try Endpoint("heartbeat:a"), token: "00ff"): memory,
            HeartbeatMemories.Job(try Endpoint("heartbeat:b"), token: ""): memory,
        ]
        let rows = HeartbeatRows.rows(memories)
        expectEqual(Set(rows.keys), ["heartbeat 00ff heartbeat:a", "heartbeat  heartbeat:b"])
        expectEqual(HeartbeatRows.memories(rows), memories)
        for (key, value) in rows {
            for damaged in ["", "{}", String(value.dropLast())] { expectEqual(HeartbeatRows.memories([key: damaged]), [:]) }
            for other in ["heartbeat", "heartbeat x", "heartbeat x a:1", "heartbeat x \u{1}"] {
                expectEqual(HeartbeatRows.memories([other: value]), [:])
            }
        }
    }
}
