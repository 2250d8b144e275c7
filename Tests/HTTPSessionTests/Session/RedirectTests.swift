import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@Suite(.timeLimit(.minutes(20))) struct RedirectTests {
    /// A server that returns the received request, or, for paths `/to/STATUS/URL` with a percent-encoded URL, a redirect.
    private func server(at address: ListeningAddress = .loopback) throws -> TestServer {
        try TestServer(at: address) { request in
            let parts = request.target.split(separator: "/", maxSplits: 2).map(String.init)
            guard parts.count == 3, parts[0] == "to", let status = Int(parts[1]), let place = parts[2].removingPercentEncoding
            else {
                return StubResponse(
                    body: "\(request.method) \(request.target) \(request["authorization"] ?? "-") \(request["cookie"] ?? "-")")
            }
            var reply = StubResponse.redirect(status, to: place)
            reply.body = "the redirect's own body"
            return reply
        }
    }

    private func path(to location: String, _ status: Int = 302) -> String {
        "/to/\(status)/\(location.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
    }

    @Test func `redirects to relative, absolute and chained URLs are followed`() async throws {
        let server = try server()
        let session = try localSession()
        for (location, target) in [("/a?b=c", "/a?b=c"), ("../../x/./y", "/x/y"), ("//127.0.0.1:\(server.port)/y", "/y")] {
            let response = try await session.dataTask(for: TransferRequest(url: server.url(path(to: location)))).response
            expectEqual(response.statusCode, 200)
            expectEqual(server.requests.last?.target, target)
        }
        let chain = path(to: path(to: path(to: "/end", 307), 301), 308)
        let response = try await session.dataTask(for: TransferRequest(url: server.url(chain))).response
        #expect(String(decoding: response.data, as: UTF8.self).hasPrefix("GET /end"))
        expectEqual(response.url, server.url("/end"))
        expectEqual(response.metrics.redirectCount, 3)
        expectEqual(response.metrics.transactions.map(\.statusCode), [308, 301, 307, 200])
    }

    @Test func `a Location that continues in the next line is followed`() async throws {
        let server = try TestServer { request in
            request.path == "/from"
                ? .raw(.text("HTTP/1.1 302 Found\r\nLocation:\r\n /to\r\nContent-Length: 0\r\n\r\n"))
                : StubResponse(body: .text(request.target))
        }
        let response = try await localSession().dataTask(for: TransferRequest(url: server.url("/from"))).response
        expectEqual(String(decoding: response.data, as: UTF8.self), "/to")
    }

    @Test func `Authorization and Cookie of request or session are not sent to another origin after a redirect`()
        async throws
    {
        let one = try server()
        let other = try server(at: .loopbackIPv6)
        var request = TransferRequest(url: one.url(path(to: other.url("/x").absoluteString)))
        request.headerFields[.authorization] = "Bearer secret"
        request.headerFields[.cookie] = "a=secret"
        let session = try localSession { $0.additionalHeaderFields = [.authorization: "Bearer session", .userAgent: "me"] }
        try await expectEqual(session.dataTask(for: request).response.data, Data("GET /x - -".utf8))
        request.headerFields = [:]
        try await expectEqual(session.dataTask(for: request).response.data, Data("GET /x - -".utf8))
        #expect(other.requests.allSatisfy { $0["user-agent"] == "me" })
        expectEqual(one.requests.map { $0["authorization"] }, ["Bearer secret", "Bearer session"])
        // Within the origin the fields are kept.
        request = TransferRequest(url: one.url(path(to: "/y")), headerFields: [.authorization: "Bearer own"])
        try await expectEqual(session.dataTask(for: request).response.data, Data("GET /y Bearer own -".utf8))
    }

    @Test func `a redirect loop fails as tooManyRedirects after maximumRedirects`() async throws {
        let server = try TestServer { .redirect(to: $0.target) }
        let session = try localSession { $0.maximumRedirects = 5 }
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .tooManyRedirects)
        expectEqual(server.requests.count, 6)
        let none = try localSession { $0.maximumRedirects = 0 }
        await expectEqual(failure(none.dataTask(for: TransferRequest(url: server.url())))?.code, .tooManyRedirects)
    }

    // RedirectRulesTests have the other schemes and URLs without a host.
    @Test func `a redirect to a URL with another scheme is refused`() async throws {
        let server = try server()
        let error = try await failure(
            localSession().dataTask(for: TransferRequest(url: server.url(path(to: "file:///etc/passwd")))))
        expectEqual(error?.code, .redirectRefused)
        expectEqual(error?.context.statusCode, 302)
    }

    @Test func `a redirect to a host that is not allowed without TLS is refused`() async throws {
        let server = try server()
        let loopback = try HostPattern("127.0.0.1")
        let session = try localSession { $0.insecureHTTP = .allowed(for: loopback) }
        let error = await failure(session.dataTask(for: TransferRequest(url: server.url(path(to: "http://[::1]:1/")))))
        expectEqual(error?.code, .insecureConnectionRefused)
    }

    @Test(arguments: [false, true]) func `a redirect from https to http is followed only with followsInsecureRedirects`(
        _ isAllowed: Bool
    ) async throws {
        let plain = try server()
        let certificate = try SelfSignedCertificate()
        let policy = try SecurityPolicy.trusting(certificate)
        let secure = try TestServer(tls: certificate.serverTLS) { _ in .redirect(to: plain.url("/x").absoluteString) }
        let session = try localSession {
            $0.followsInsecureRedirects = isAllowed
            $0.securityPolicy = policy
        }
        let task = session.dataTask(for: TransferRequest(url: secure.url()))
        if isAllowed {
            try await expectEqual(task.response.data, Data("GET /x - -".utf8))
        } else {
            await expectEqual(failure(task)?.code, .redirectRefused)
            expectEqual(plain.seen.connections, 0)
        }
    }

    @Test func `a redirect handler can follow, modify or refuse a redirect`() async throws {
        let server = try server()
        let asked = Locked<[String]>([])
        let handlers = TransferHandlers(redirect: { redirect in
            asked.withLock { $0.append("\(redirect.response.statusCode) \(redirect.proposed.url.path)") }
            switch redirect.proposed.url.path {
            case "/refused": return .refuse
            case "/changed":
                var request = redirect.proposed
                request.headerFields[.authorization] = "Changed"
                request.url = URL(string: "/elsewhere", relativeTo: request.url) ?? request.url
                return .modify(request)
            default: return .follow
            }
        })
        let session = try localSession(handlers: handlers)
        let followed = try await session.dataTask(for: TransferRequest(url: server.url(path(to: "/followed")))).response
        expectEqual(followed.data, Data("GET /followed - -".utf8))
        let changed = try await session.dataTask(for: TransferRequest(url: server.url(path(to: "/changed")))).response
        expectEqual(changed.data, Data("GET /elsewhere Changed -".utf8))
        let refused = try await session.dataTask(for: TransferRequest(url: server.url(path(to: "/refused")))).response
        expectEqual(refused.statusCode, 302)
        expectEqual(refused.data, Data("the redirect's own body".utf8))
        expectEqual(refused.metrics.redirectCount, 0)
        expectEqual(asked.withLock { $0 }, ["302 /followed", "302 /changed", "302 /refused"])
    }

    @Test func `a redirect handler's replacement body is sent, also after a further redirect`() async throws {
        let server = try TestServer { request in
            switch request.path {
            case "/": .redirect(to: "/one")
            case "/one": .redirect(307, to: "/two")
            default: StubResponse(body: "\(request.method) \(request["content-length"] ?? "-") \(request.text)")
            }
        }
        let handlers = TransferHandlers(redirect: { redirect in
            guard redirect.proposed.url.path == "/one" else { return .follow }
            var request = redirect.proposed
            request.method = .put
            request.body = .data(Data("another".utf8))
            return .modify(request)
        })
        let session = try localSession(handlers: handlers)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("PUT 7 another".utf8))
        let upload = TransferRequest(url: server.url(), method: .post, body: .data(Data("first".utf8)))
        try await expectEqual(session.dataTask(for: upload).response.data, Data("PUT 7 another".utf8))
        let missing = TransferHandlers(redirect: { redirect in
            var request = redirect.proposed
            request.body = .file(URL(fileURLWithPath: "/nowhere/at/all"))
            return .modify(request)
        })
        await expectEqual(
            failure(session.dataTask(for: TransferRequest(url: server.url()), handlers: missing))?.code, .cannotReadFile)
    }

    @Test(arguments: ["ftp://a/b", "mailto:a@b", "/no/base", "http:///x"])
    func `a redirect handler's invalid request fails the task`(_ text: String) async throws {
        let server = try server()
        let url = try #require(URL(string: text))
        let handlers = TransferHandlers(redirect: { _ in .modify(TransferRequest(url: url)) })
        let session = try localSession(handlers: handlers)
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url(path(to: "/x")))))?.code, .invalidRequest)
    }

    @Test func `a refused redirect fails a download and leaves no file`() async throws {
        let server = try server()
        let folder = try ScratchDirectory()
        let session = try localSession(handlers: TransferHandlers(redirect: { _ in .refuse }))
        let error = await failure(
            session.downloadTask(for: TransferRequest(url: server.url(path(to: "/x"))), to: .init(folder.url("file"))))
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.context.responseBody, Data("the redirect's own body".utf8))
        expectEqual(folder.names, [])
    }

    @Test func `a redirect's long body is not read completely, and is not returned as a complete response`() async throws {
        let server = try TestServer { request in
            guard request.path == "/" else { return StubResponse(body: "there") }
            var reply = StubResponse.redirect(to: "/there")
            reply.body = .zeros(1 << 30)
            return reply
        }
        try await expectEqual(localSession().dataTask(for: TransferRequest(url: server.url())).response.data, Data("there".utf8))
        let refusing = try localSession(handlers: TransferHandlers(redirect: { _ in .refuse }))
        await expectEqual(failure(refusing.dataTask(for: TransferRequest(url: server.url())))?.code, .responseTooLarge)
    }

    @Test func `a redirect handler that never returns fails the task after the handler timeout`() async throws {
        let server = try server()
        let handlers = TransferHandlers(redirect: { _ in
            try? await Task.sleep(for: .seconds(3600))
            return .follow
        })
        let session = try localSession({ $0.handlerTimeout = .milliseconds(100) }, handlers: handlers)
        await expectEqual(
            failure(session.dataTask(for: TransferRequest(url: server.url(path(to: "/x")))))?.code, .handlerTimedOut)
    }

    @Test func `a task can be suspended or canceled while its redirect handler runs`() async throws {
        let server = try server()
        let (asked, answer) = (Signal(), Signal())
        let handlers = TransferHandlers(redirect: { _ in
            asked.fire()
            await answer.wait()
            return .follow
        })
        let session = try localSession()
        let task = session.dataTask(for: TransferRequest(url: server.url(path(to: "/x"))), handlers: handlers)
        await asked.wait()
        task.suspend()
        answer.fire()
        _ = try await session.dataTask(for: TransferRequest(url: server.url("/other"))).response
        expectEqual(server.requests.last?.path, "/other")
        task.resume()
        try await expectEqual(task.response.data, Data("GET /x - -".utf8))

        let again = Signal()
        let cancelled = session.dataTask(
            for: TransferRequest(url: server.url(path(to: "/y"))),
            handlers: TransferHandlers(redirect: { _ in
                again.fire()
                try? await Task.sleep(for: .seconds(3600))
                return .follow
            }))
        await again.wait()
        cancelled.cancel()
        await expectEqual(failure(cancelled)?.code, .cancelled)
    }

    @Test(arguments: ["cut", "reset", "gzip", "chunks"])
    func `a redirect with a truncated body is followed, and is an error if it is refused`(_ fault: String)
        async throws
    {
        let server = try TestServer { request in
            guard request.path == "/" else { return StubResponse(body: "there") }
            let reply = StubResponse(302, fields: ["Location": "/next"], body: .pattern(1_000))
            return switch fault {
            case "cut": reply.cut(afterBodyBytes: 100)
            case "reset": reply.cut(afterBodyBytes: 100, .reset)
            case "gzip": reply.field("Content-Encoding", "gzip")
            default: reply.brokenChunks(.sizeIsNoNumber)
            }
        }
        try await expectEqual(localSession().dataTask(for: TransferRequest(url: server.url())).response.data, Data("there".utf8))
        let session = try localSession(handlers: TransferHandlers(redirect: { _ in .refuse }))
        #expect(await failure(session.dataTask(for: TransferRequest(url: server.url()))) != nil)
    }

    @Test func `a Host field and cookies are not sent to another origin after a redirect`() async throws {
        let other = try TestServer(at: .ip("127.0.0.2", port: 0)) { _ in StubResponse(body: "there") }
        let target = other.url("/").absoluteString
        let server = try TestServer { request in
            request.path == "/" ? StubResponse(fields: ["Set-Cookie": "secret=1; Path=/"]) : .redirect(to: target)
        }
        let session = try localSession()
        let name = try #require(HTTPField.Name("Host"))
        for path in ["/", "/away"] {
            var request = TransferRequest(url: server.url(path))
            request.headerFields[name] = "virtual.example"
            _ = try await session.dataTask(for: request).response
        }
        expectEqual(server.requests.map { $0["host"] }, ["virtual.example", "virtual.example"])
        expectEqual(server.requests.map { $0["cookie"] }, [nil, "secret=1"])
        expectEqual(other.requests.map { $0["host"] }, ["127.0.0.2:\(other.port)"])
        expectEqual(other.requests.map { $0["cookie"] }, [nil])
    }

    @Test func `a named field does not follow after a downgrade, even back to https`() async throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        let certificate = try SelfSignedCertificate()
        let policy = try SecurityPolicy.trusting(certificate)
        let last = try TestServer(tls: certificate.serverTLS) { _ in StubResponse(body: "x") }
        let (end, plain) = (
            last.url("/end").absoluteString, try TestServer { _ in .redirect(to: last.url("/end").absoluteString) }
        )
        // The first server redirects to the last one, directly or by http.
        let first = try TestServer(tls: certificate.serverTLS) { request in
            .redirect(to: request.path == "/direct" ? end : plain.url("/x").absoluteString)
        }
        let session = try localSession {
            ($0.followsInsecureRedirects, $0.securityPolicy) = (true, policy)
            ($0.additionalHeaderFields, $0.forwardedHeaderFields) = ([key: "secret"], [key])
        }
        for path in ["/direct", "/by-http"] {
            try await expectEqual(session.dataTask(for: TransferRequest(url: first.url(path))).response.statusCode, 200)
        }
        expectEqual(first.requests.map { $0["x-api-key"] }, ["secret", "secret"])
        expectEqual(plain.requests.map { $0["x-api-key"] }, [nil])
        expectEqual(last.requests.map { $0["x-api-key"] }, ["secret", nil])
    }

    @Test(arguments: [false, true])
    func `custom fields of request and session go to another origin only if the session names them`(isNamed: Bool) async throws {
        let other = try TestServer { _ in StubResponse(body: "x") }
        let address = other.url("/there").absoluteString
        let server = try TestServer { _ in StubResponse(302).field("Location", address) }
        let (key, trace) = (try #require(HTTPField.Name("X-Api-Key")), try #require(HTTPField.Name("X-Trace")))
        let session = try localSession {
            $0.additionalHeaderFields = [key: "secret", .userAgent: "agent"]
            if isNamed { $0.forwardedHeaderFields = [key, trace] }
        }
        let request = TransferRequest(url: server.url(), headerFields: [trace: "7", .acceptLanguage: "de"])
        _ = try await session.dataTask(for: request).response
        let names = ["x-api-key", "x-trace", "user-agent", "accept-language"]
        expectEqual(names.map { name in server.requests.first?[name] }, ["secret", "7", "agent", "de"])
        expectEqual(
            names.map { name in other.requests.first?[name] },
            isNamed ? ["secret", "7", "agent", "de"] : [nil, nil, "agent", "de"])
    }
}
