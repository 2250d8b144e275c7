import Certificates
import Expectations
import Testing

@testable import Reachability

/// A redirect to another host is followed with a lookup, a route and a connection of its own.
@Suite struct TargetRedirectTests {
    private static let first = "192.0.2.1"
    private static let second = "192.0.2.2"

    private func target(_ change: (inout ProbeSettings) throws -> Void = { _ in }) throws -> Transcript {
        var settings = ProbeSettings(failAfter: 1)
        try change(&settings)
        return try Transcript("http://a.example/", settings)
    }

    /// Plays a probe until its server answers with `response`. - Returns: the lines of the answer.
    private func answered(
        _ target: inout Transcript, by address: String = first, _ response: String, at time: Int64 = 0
    ) throws -> [String] {
        if let id = Self.lookup(target.effects) { expectEqual(target.at(time, .found(id, address)), ["route? \(address)"]) }
        let connect = target.at(time, route(&target, to: address))
        let attempt = try #require(Self.attempt(target.effects), "\(connect)")
        expectEqual(connect, ["connect \(attempt.id) \(address)"])
        return try respond(&target, to: attempt, response, at: time)
    }

    private func respond(
        _ target: inout Transcript, to attempt: ProbeAttempt, _ response: String, at time: Int64
    ) throws -> [String] {
        expectEqual(target.at(time, .connected(attempt.id)), [])
        let run = try #require(attempt.plan?.stream?.makeRun(deadline: attempt.deadline))
        run.connected(0)
        Array(response.utf8).withUnsafeBytes { run.receive($0, now: 0) }
        run.inputEnded(0)
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: 5_000_000)
        result.levels = run.result
        return target.at(time, .probe(result))
    }

    private func route(_ target: inout Transcript, to address: String, isOpen: Bool = true) -> TargetMachine.Event {
        let queries = target.effects.compactMap { effect -> RouteQuery? in
            if case .askRoute(let query) = effect { query } else { nil }
        }
        let query = queries.last ?? RouteQuery(IPAddress(v4: 0))
        guard isOpen else { return .route(query, .refused(errno: SystemErrorNumber.networkUnreachable.rawValue)) }
        return .route(
            query,
            .route(ChosenRoute(interface: 2, gateway: IPAddress("10.0.0.1"), source: IPAddress("10.0.0.2"))))
    }

    private static func lookup(_ effects: [TargetMachine.Effect]) -> UInt64? {
        for case .resolve(let request) in effects { return request.id }
        return nil
    }

    private static func attempt(_ effects: [TargetMachine.Effect]) -> ProbeAttempt? {
        for case .connect(let attempt) in effects { return attempt }
        return nil
    }

    private func redirect(to location: String) -> String {
        "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"
    }

    private func page(_ body: String) -> String { "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)" }

    @Test func `the other host is resolved and asked, and the target is up`() throws {
        var target = try target()
        expectEqual(target.at(0, .begin), ["initial unknown", "resolve 1 a.example"])
        try expectEqual(answered(&target, redirect(to: "http://b.example/x")), ["resolve 3 b.example"])
        try expectEqual(answered(&target, by: Self.second, page("hello")), ["report ok", "up 192.0.2.1 eth0"])
        let report = try #require(Self.report(target))
        #expect(report.levels?.http?.redirects == ["http://b.example/x"] && report.levels?.http?.otherHost == "b.example")
        #expect(report.levels?.http?.response.status == 200 && report.address == IPAddress(Self.first))
    }

    @Test func `several hosts are followed, and the sentence of the last response names the target`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://b.example/"))
        try expectEqual(answered(&target, by: Self.second, redirect(to: "http://192.0.2.3/c")), ["route? 192.0.2.3"])
        let lines = try answered(&target, by: "192.0.2.3", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        expectEqual(lines, ["report http/status", "down http/status 192.0.2.1 eth0"])
        let cause = try #require(target.cause)
        #expect(
            cause.detail.hasPrefix("a.example redirects to http://192.0.2.3/c, which answers 503 Busy"), "\(cause.detail)")
        expectEqual(cause.evidence["redirects"], .list(["http://b.example/", "http://192.0.2.3/c"]))
    }

    @Test func `a redirect back to a URL that was requested is a loop`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://b.example/"))
        let lines = try answered(&target, by: Self.second, redirect(to: "http://a.example/"))
        expectEqual(lines, ["report http/invalid-response", "down http/invalid-response 192.0.2.1 eth0"])
        expectEqual(target.cause?.detail, "a.example redirects in a loop, back to http://a.example/")
    }

    @Test func `the cause of another host that fails names the redirect`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://b.example:81/"))
        _ = target.at(0, .found(3, Self.second))
        _ = target.at(0, route(&target, to: Self.second))
        let attempt = try #require(Self.attempt(target.effects))
        expectEqual(
            target.at(1, .failed(attempt.id, .connectionRefused)), ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        expectEqual(
            target.cause?.detail, "a.example redirects to http://b.example:81/: 192.0.2.2 refuses connections to port 81")
        expectEqual(target.cause?.evidence["redirects"], .list(["http://b.example:81/"]))
    }

    @Test func `another host without a name, a route or an answer makes the target unreachable`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://b.example/"))
        expectEqual(
            target.at(9, .notFound(3, .nameNotFound)),
            [
                "report dns/name-not-found", "down dns/name-not-found 192.0.2.1 eth0",
            ])

        target = try self.target()
        _ = target.at(0, .begin)
        try expectEqual(answered(&target, redirect(to: "http://192.0.2.2/")), ["route? 192.0.2.2"])
        expectEqual(
            target.at(9, route(&target, to: Self.second, isOpen: false)),
            [
                "report route/no-route", "unreachable route/no-route 192.0.2.1 eth0",
            ])

        target = try self.target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://192.0.2.2/"))
        _ = target.at(0, route(&target, to: Self.second))
        let attempt = try #require(Self.attempt(target.effects))
        var lines: [String] = []
        while lines.last?.hasPrefix("report") != true, let due = target.tickDue, due < 4_000 {
            lines = target.at(due + 1, .tick)
            if lines.contains("neighbor? 10.0.0.1 on 2") {
                let key = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
                lines = target.at(due + 1, .neighbor(key, .state(.reachable)))
            }
            if lines.contains(where: { $0.hasPrefix("report") }) { break }
        }
        #expect(attempt.id > 0 && lines == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"], "\(lines)")
    }

    @Test func `a declared expectation may be met by the other host`() throws {
        var target = try target { try $0.http.expectBody("hello") }
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://b.example/"))
        try expectEqual(answered(&target, by: Self.second, page("hello")), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `a declared expectation that the other host does not meet shows a captive portal`() throws {
        var target = try target { try $0.http.expectBody("hello") }
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://portal.lan/login"))
        let lines = try answered(&target, by: Self.second, page("Please log in"))
        expectEqual(lines, ["report http/captive-portal", "down http/captive-portal 192.0.2.1 eth0"])
        expectEqual(target.cause?.detail, "a login page of the network answers for a.example: it redirects to portal.lan")
    }

    @Test func `without a response behind the redirect, its failure counts also for a declared expectation`() throws {
        var target = try target { try $0.http.expectBody("hello") }
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://portal.lan/login"))
        expectEqual(
            target.at(9, .notFound(3, .nameNotFound)),
            [
                "report dns/name-not-found", "down dns/name-not-found 192.0.2.1 eth0",
            ])
        let detail = "a.example redirects to http://portal.lan/login: there is no name portal.lan"
        expectEqual(target.cause?.detail, detail)

        target = try self.target { try $0.http.expectBody("hello") }
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://192.0.2.2:1/"))
        _ = target.at(0, route(&target, to: Self.second))
        let attempt = try #require(Self.attempt(target.effects))
        expectEqual(
            target.at(1, .failed(attempt.id, .connectionRefused)), ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        expectNil(target.cause?.evidence["expectation"])
    }

    @Test func `a redirect within the host whose connection is refused has the cause of its port`() throws {
        for isDeclared in [false, true] {
            var target = try target { if isDeclared { try $0.http.expectBody("hello") } }
            _ = target.at(0, .begin)
            let lookup = try #require(Self.lookup(target.effects))
            expectEqual(target.at(0, .found(lookup, Self.first)), ["route? 192.0.2.1"])
            _ = target.at(0, route(&target, to: Self.first))
            let first = try #require(Self.attempt(target.effects))
            expectEqual(target.at(0, .connected(first.id)), [])
            let run = try #require(first.plan?.stream?.makeRun(deadline: first.deadline))
            run.connected(0)
            Array(redirect(to: "http://a.example:1/x").utf8).withUnsafeBytes { run.receive($0, now: 0) }
            #expect(run.nextPort(after: 80) == 1 && !run.hasEnded)
            if isDeclared {
                run.connectionFailed(SystemErrorNumber.connectionRefused.rawValue)
            } else {
                // The port is silent until the deadline.
                run.deadlineReached(ConnectionProgress(unacknowledged: 1))
            }
            #expect(!run.result.isAtDeadline)
            #expect(run.hasEnded && run.result.http?.response.status == 302)
            var result = ProbeResult(id: first.id, roundTripNanoseconds: 5_000_000)
            result.levels = run.result
            let lines = target.at(0, .probe(result))
            let second = try #require(Self.lookup(target.effects))
            expectEqual(lines, ["resolve \(second) a.example"])
            _ = target.at(0, .found(second, Self.first))
            _ = target.at(0, route(&target, to: Self.first))
            let attempt = try #require(Self.attempt(target.effects))
            expectEqual(attempt.port, 1)
            expectEqual(
                target.at(1, .failed(attempt.id, .connectionRefused)),
                [
                    "report tcp/refused", "down tcp/refused 192.0.2.1 eth0",
                ])
            expectEqual(
                target.cause?.detail, "a.example redirects to http://a.example:1/x: 192.0.2.1 refuses connections to port 1")
        }
    }

    @Test func `the other host receives neither credentials nor the target's field Host`() throws {
        var target = try target {
            try $0.http.setHost("c.example")
            try $0.http.authorize(by: .bearer("secret"))
            try $0.http.addField("Cookie", "session=1")
            for name in ["X-Probe", "X-Api-Key", "Accept-Language"] { try $0.http.addField(name, "1") }
            $0.http.forwardedFields = ["x-probe"]
            $0.tls.serverName = "d.example"
        }
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "https://b.example/"))
        _ = target.at(0, .found(3, Self.second))
        _ = target.at(0, route(&target, to: Self.second))
        let attempt = try #require(Self.attempt(target.effects))
        let plan = try #require(attempt.plan?.plan as? HTTPPlan)
        let request = try #require(plan.request)
        #expect(request.authorization == nil && request.hostField == "b.example")
        expectEqual(request.fields.map(\.name), ["X-Probe", "Accept-Language"])
        #expect(plan.tls.serverName == "b.example" && plan.scheme.usesTLS && attempt.port == 443)
    }

    @Test func `a removed route ends the probe of the other host too`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = try answered(&target, redirect(to: "http://192.0.2.2/"))
        _ = target.at(0, route(&target, to: Self.second))
        let attempt = try #require(Self.attempt(target.effects))
        expectEqual(target.at(100, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(
            target.at(101, .noRoute(to: Self.first)),
            [
                "report route/no-route", "cancel \(attempt.id)", "unreachable route/no-route 192.0.2.1",
            ])
    }

    private static func report(_ target: Transcript) -> ProbeReport? {
        for case .report(let report) in target.effects { return report }
        return nil
    }
}
