import Console
import EventLoop
import Expectations
import Foundation
import Testing

@testable import netwatch_service

@Suite(.timeLimit(.minutes(5))) struct WebRouteTests {
    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test func `each resource answers with its media type and the fields that protect it`() async throws {
        let site = try Site()
        let expected = [
            ("/", "text/html; charset=utf-8"), ("/?q=a", "text/html; charset=utf-8"),
            ("/target/office", "text/html; charset=utf-8"),
            ("/badge/office.svg", "image/svg+xml"), ("/favicon.svg", "image/svg+xml"), ("/style.css", "text/css; charset=utf-8"),
            ("/api/v1/status", "application/json"), ("/api/v1/history?since=1", "application/json"),
            ("/-/healthy", "text/plain; charset=utf-8"), ("/-/ready", "text/plain; charset=utf-8"),
        ]
        for (target, type) in expected {
            let response = try await site.with { try $0.client().get(target) }
            expectEqual(response.status, 200, "\(target): \(response)")
            expectEqual(response.fields["content-type"], type, "\(target)")
            expectEqual(response.fields["x-content-type-options"], "nosniff", "\(target)")
            expectEqual(response.fields["content-security-policy"]?.contains("frame-ancestors 'none'"), true, "\(target)")
            expectEqual(response.fields["cache-control"], (target == "/style.css" ? "no-cache" : "no-store"), "\(target)")
            expectEqual(response.fields["date"]?.hasSuffix(" GMT"), true, "\(target)")
        }
        try await site.stop()
    }

    @Test func `docs/service.md has the path of each route that people and programs ask for`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/service.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        // Only pages ask for these.
        let parts = ["/favicon.svg", PageAsset.style.path.rawValue, PageAsset.script.path.rawValue]
        for route in WebRoute.all where !parts.contains(route.path) {
            #expect(text.contains("`\(route.path.prefix { $0 != "{" })") || text.contains("POST \(route.path)"), "\(route.path)")
        }
    }

    @Test func `the status document has the targets of a query, and the position of the next ones`() async throws {
        let site = try Site(board: Site.board(targets: 150))
        let first = try object(try await site.with { try $0.client().get("/api/v1/status") }.body)
        #expect((first["targets"] as? [Any])?.count == 100 && first["total"] as? Int == 150)
        expectEqual(first["instance"] as? String, "box")
        expectEqual((first["recording"] as? [String: Any])?["ok"] as? Bool, true)
        let next = try #require(first["next"] as? String)
        let second = try object(try await site.with { try $0.client().get("/api/v1/status?after=\(next)") }.body)
        #expect((second["targets"] as? [Any])?.count == 50 && second["next"] is NSNull)
        let one = try object(try await site.with { try $0.client().get("/api/v1/status?q=a7&limit=1000&status=up") }.body)
        expectEqual((one["targets"] as? [[String: Any]])?.first?["target"] as? String, "a7:80")
        expectEqual(Set(first.keys), ["v", "ts", "path", "targets", "canary", "instance", "recording", "total", "next"])
        try await site.stop()
    }

    @Test(arguments: [
        ("/api/v1/status?limit=1001", 400), ("/api/v1/status?status=fine", 400), ("/api/v1/status?after=x", 400),
        ("/api/v1/history?since=x", 400), ("/nothing", 404), ("/target/none", 404), ("/target/", 404),
        ("/badge/", 404), ("/badge/office", 404), ("/badge/office.svg/x", 404), ("//office", 404),
        ("/metrics", 404), ("/probe?target=x", 404), ("/api/v1/events?target=none", 404), ("/api", 404),
        ("/target/%ff%fe\"<b>", 404), ("/%", 404), ("/api/v1/status?limit=1&limit=2", 400), ("/api/v1/status?q=%zz", 400),
        ("/api/v1/status?q=%ff", 400), ("/api/v1/events?target=office&target=none", 404),
        ("/api/v1/events?last_event_id=x", 400),
    ])
    func `a request that cannot be answered has an error in JSON`(target: String, status: Int) async throws {
        let site = try Site()
        let response = try await site.with { try $0.client().get(target) }
        expectEqual(response.status, status, "\(response)")
        expectEqual(response.fields["content-type"], "application/json")
        expectEqual(Set(try object(response.body).keys), ["error", "detail"])
        try await site.stop()
    }

    @Test(arguments: ["/badge/..%2f..%2fetc%2fpasswd.svg", "/badge/%00.svg", "/badge/absent.svg"])
    func `a badge of an unknown name is an image that says so`(target: String) async throws {
        let site = try Site()
        let response = try await site.with { try $0.client().get(target) }
        expectEqual(response.status, 404)
        expectEqual(response.fields["content-type"], "image/svg+xml")
        #expect(response.body.contains("not known"))
        try await site.stop()
    }

    @Test func `a browser receives a page about an error, and a program its document`() async throws {
        let site = try Site()
        let page = try await site.with { try $0.client().get("/nothing", "Accept: text/html,*/*") }
        #expect(page.status == 404 && page.body.contains("<h1>Not found</h1><p>nothing has the path /nothing</p>"))
        let document = try await site.with { try $0.client().get("/api/none", "Accept: text/html,*/*") }
        expectEqual(document.fields["content-type"], "application/json")
        try await site.stop()
    }

    @Test func `the status document has the targets that a query names`() async throws {
        let site = try Site()
        for (query, keys) in [("target=office", ["a1:80"]), ("target=a2&target=a3:80&limit=1", ["a2:80"])] {
            let response = try await site.with { try $0.client().get("/api/v1/status?\(query)") }
            let document = try object(response.body)
            let targets = (document["targets"] as? [[String: Any]])?.map { $0["target"] as? String }
            expectEqual(targets, keys)
            expectEqual(document["total"] as? Int, query.components(separatedBy: "target=").count - 1)
        }
        let unknown = try await site.with { try $0.client().get("/api/v1/status?target=absent") }
        #expect(unknown.status == 404 && unknown.body.contains("target 'absent': no target has this identifier, name or text"))
        try await site.stop()
    }

    @Test func `other methods are refused with those that a resource has`() async throws {
        let site = try Site()
        for (method, target, allow) in [
            ("POST", "/", "GET, HEAD"), ("POST", "/api/v1/status", "GET, HEAD"), ("GET", "/-/reload", "POST"),
            ("DELETE", "/", "GET, HEAD"), ("PUT", "/", "GET, HEAD"), ("PUT", "/-/reload", "POST"),
        ] {
            let response = try await site.with { try $0.client().get(target, method: method) }
            #expect(response.status == 405 && response.fields["allow"] == allow, "\(method) \(target): \(response)")
        }
        try await site.stop()
    }

    @Test(arguments: ["/", "/api/v1/status", "/-/healthy", "/style.css", "/target/office"])
    func `HEAD has the fields of GET and no content`(target: String) async throws {
        let site = try Site()
        try await site.with { site in
            let client = try site.client()
            let get = try client.get(target)
            let head = try client.get(target, method: "HEAD")
            #expect(head.status == 200 && head.body.isEmpty)
            expectEqual(head.fields["content-type"], get.fields["content-type"])
            // Only a document that is there already has a known length.
            expectEqual(
                head.fields["content-length"], ["/-/healthy", "/style.css"].contains(target) ? "\(get.body.utf8.count)" : nil)
            // The connection is in order after it.
            try expectEqual(client.get(target).body, get.body)
        }
        let stream = try await site.with { site in
            let client = try site.client()
            client.send("HEAD /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return try client.readToEnd()
        }
        #expect(stream.hasPrefix("HTTP/1.1 200 OK\r\n") && stream.contains("text/event-stream"))
        // No chunk follows the head.
        expectEqual(stream.firstRange(of: "\r\n\r\n")?.upperBound, stream.endIndex, "\(stream)")
        try await site.stop()
    }

    @Test func `an asset has a tag, and is immutable under the address that contains it`() async throws {
        let site = try Site()
        let plain = try await site.with { try $0.client().get("/style.css") }
        let tag = PageAsset.style.tag
        expectEqual(plain.fields["etag"], "\"\(tag)\"")
        let named = try await site.with { try $0.client().get("/style.css?v=\(tag)") }
        #expect(named.fields["cache-control"]?.contains("immutable") == true)
        try await expectEqual(site.with { try $0.client().get("/style.css", "If-None-Match: \"\(tag)\"") }.status, 304)
        try await site.stop()
    }

    @Test func `reloading answers 200 with the changes, 422 with the reason, or 409 with the changes to confirm`() async throws {
        let site = try Site()
        func reload(_ query: String = "") async throws -> RawClient.Response {
            try await site.with { try $0.client().get("/-/reload\(query)", method: "POST", "Content-Length: 0") }
        }
        let counts = ReloadCounts(added: 2, removed: 1, changed: 3)
        site.reloadOutcome.withLock { $0 = .loaded(counts, restartKeys: []) }
        let loaded = try await reload()
        #expect(loaded.status == 200 && loaded.body == "the configuration was loaded: +2 −1 ~3\n")
        site.reloadOutcome.withLock { $0 = .loaded(counts, restartKeys: ["state", "time_zone"]) }
        try await expectEqual(
            reload().body, "the configuration was loaded: +2 −1 ~3; a restart is needed for state, time_zone\n")
        let document = try object(try await reload("?format=json").body)
        expectEqual(document["v"] as? Int, 1)
        expectEqual(["added", "removed", "changed"].map { document[$0] as? Int }, [2, 1, 3])
        expectEqual(document["restart_keys"] as? [String], ["state", "time_zone"])

        site.reloadOutcome.withLock { $0 = .refused(Failure(78, "a.yaml:1:2: unknown key \"<b>\n\"")) }
        let refused = try await reload()
        expectEqual(refused.status, 422)
        try expectEqual(object(refused.body)["detail"] as? String, "a.yaml:1:2: unknown key \"<b>\n\"")

        let refusal = ReloadGuard.Refusal(counts: ReloadCounts(removed: 3), total: 3, request: .post(confirmed: nil))
        site.reloadOutcome.withLock { $0 = .unconfirmed(refusal) }
        let unconfirmed = try await reload()
        expectEqual(unconfirmed.status, 409)
        let problem = try object(unconfirmed.body)
        expectEqual(problem["error"] as? String, "conflict")
        expectEqual(
            problem["detail"] as? String,
            "keeping the previous configuration: the new one removes all 3 targets (+0 −3 ~0); to confirm it, POST /-/reload?confirm=3"
        )
        expectEqual(["added", "removed", "changed"].map { problem[$0] as? Int }, [0, 3, 0])
        try await site.stop()
    }

    @Test func `a reload with a number confirms it, and shares no load with another number`() async throws {
        let site = try Site()
        for query in ["confirm=x", "confirm=-1", "confirm=", "format=csv"] {
            let response = try await site.with { try $0.client().get("/-/reload?\(query)", method: "POST", "Content-Length: 0") }
            expectEqual(response.status, 400, "\(query)")
        }
        site.holdsReloads.withLock { $0 = true }
        try await site.with { site in
            func reload(_ query: String) throws -> RawClient {
                let client = try site.client()
                client.send("POST /-/reload\(query) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
                return client
            }
            var clients = [try reload("")]
            site.awaitHeld(1)
            for query in ["?confirm=3", "", "?confirm=3", "?confirm=2"] { clients.append(try reload(query)) }
            // The last of them has arrived when a request after it is answered by the same thread.
            try expectEqual(site.client().get("/").status, 200)
            site.holdsReloads.withLock { $0 = false }
            site.release()
            for client in clients { try expectEqual(client.response().status, 200) }
        }
        let confirmed = site.confirmed.withLock { $0 }
        expectEqual(confirmed.first, .some(nil))
        expectEqual(Set(confirmed), [nil, 3, 2])
        #expect(confirmed.count <= 5)
        try await site.stop()
    }

    @Test func `an unhealthy service answers 503`() async throws {
        let site = try Site(board: nil)
        try await expectEqual(site.with { try $0.client().get("/-/healthy") }.status, 200)
        site.isHealthy.withLock { $0 = false }
        try await expectEqual(site.with { try $0.client().get("/-/healthy") }.status, 503)
        // Before the first board there is nothing to show.
        for target in ["/", "/api/v1/status", "/api/v1/events", "/badge/office.svg"] {
            try await expectEqual(site.with { try $0.client().get(target) }.status, 503, "\(target)")
        }
        try await site.stop()
    }

    @Test func `a large document arrives completely`() async throws {
        let site = try Site(board: Site.board(targets: 1000))
        let response = try await site.with { try $0.client().get("/api/v1/status?limit=1000", "Connection: close") }
        #expect(response.body.utf8.count > 200_000)
        expectEqual((try object(response.body)["targets"] as? [Any])?.count, 1000)
        try await site.stop()
    }

    @Test func `reloads that are asked for during one share the next one`() async throws {
        let site = try Site()
        site.holdsReloads.withLock { $0 = true }
        try await site.with { site in
            func reload() throws -> RawClient {
                let client = try site.client()
                client.send("POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
                return client
            }
            var clients = [try reload()]
            site.awaitHeld(1)
            for _ in 0..<16 { clients.append(try reload()) }
            // The last of them has arrived when a request after it is answered by the same thread.
            try expectEqual(site.client().get("/").status, 200)
            site.holdsReloads.withLock { $0 = false }
            site.release()
            for client in clients { try expectEqual(client.response().status, 200) }
            #expect(site.reloads.withLock { $0 } <= 4)
        }
        try await site.stop()
    }

    @Test func `the Unix socket answers without Host`() async throws {
        let site = try Site()
        let mode = try FileManager.default.attributesOfItem(atPath: site.path)[.posixPermissions] as? Int
        expectEqual(mode, 0o660)
        let status = try await site.with { site in
            let client = try RawClient(path: site.path)
            client.send("GET /-/healthy HTTP/1.1\r\n\r\n")
            return try client.response().status
        }
        expectEqual(status, 200)
        try await site.stop()
        #expect(!FileManager.default.fileExists(atPath: site.path))
    }
}
