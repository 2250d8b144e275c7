import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Logging
import NetworkLab
import Testing

/// Text from a caller does not end a header line, and secrets are not printed.
@Suite(.timeLimit(.minutes(20))) struct SecretsTests {
    // MARK: Injection

    @Test(
        arguments: ["a\r\nX-Injected: 1", "a\nX-Injected: 1", "a\0b", "a\rb"],
        ["Bearer realm=r", "Basic realm=r", "Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\""])
    func `a credential with a line break or NUL fails as authenticationFailed`(_ secret: String, _ challenge: String) async throws
    {
        let server = try TestServer { $0["authorization"] == nil ? .unauthorized(challenge) : StubResponse() }
        let credentials =
            challenge.hasPrefix("Bearer")
            ? [Credential(token: secret)] : [Credential(user: "user", password: secret), Credential(user: secret, password: "x")]
        for credential in credentials {
            let session = try localSession(
                handlers: TransferHandlers(challenge: { $0.previousFailureCount == 0 ? .useCredential(credential) : .cancel }))
            let error = await failure(session.dataTask(for: TransferRequest(url: server.url())))
            expectEqual(error?.code, .authenticationFailed)
        }
        #expect(server.requests.allSatisfy { $0["x-injected"] == nil })
    }

    @Test func `a line break or NUL in the user or password of a URL fails as authenticationFailed`() async throws {
        for text in ["http://a%0D%0AX-Injected%3A%201:b@", "http://a:b%0D%0AX-Injected%3A%201@", "http://a%00b:c@"] {
            for challenge in ["Basic realm=r", "Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\""] {
                let server = try TestServer { $0["authorization"] == nil ? .unauthorized(challenge) : StubResponse() }
                let session = try localSession()
                let url = try #require(URL(string: "\(text)127.0.0.1:\(server.port)/"))
                let error = await failure(session.dataTask(for: TransferRequest(url: url)))
                expectEqual(error?.code, .authenticationFailed)
                #expect(server.requests.allSatisfy { $0["x-injected"] == nil })
            }
        }
    }

    @Test func `framing fields are refused in a session's additional header fields`() async throws {
        for name: HTTPField.Name in [.contentLength, .transferEncoding, .connection] {
            let error = HTTPSessionError.thrown { try localSession { $0.additionalHeaderFields[name] = "5" } }
            expectEqual(error?.code, .invalidConfiguration)
        }
    }

    @Test func `a header field's value or name or a method injects no further field`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession()
        var fields = HTTPFields()
        for value in [
            "a\r\nX-Injected: 1", "a\nX-Injected: 1", "a\0b", "", " ", "\u{7f}", ";", "@/etc/passwd", "ü€😀",
            "\u{2028}X-Injected: 1",
        ] {
            fields.append(HTTPField(name: HTTPField.Name("X-A")!, value: value))
        }
        _ = try await session.dataTask(for: TransferRequest(url: server.url(), headerFields: fields)).response
        expectNil(server.requests.first?["x-injected"])
        for method in ["GET / HTTP/1.1\r\nX: y", "A B", "", "ü", "A\0"] { expectNil(HTTPRequest.Method(method)) }
    }

    // MARK: Secrets

    @Test(arguments: [
        "http://user:s3cret@ho st:80", "http://user:s3cret@[::1", "http://user:s3cret@127.0.0.1:99999",
        "socks5://user:s3cret@127.0.0.1:x", "https://user:s3cret@127.0.0.1:1",
    ])
    func `a proxy's password does not appear in errors`(_ proxy: String) async throws {
        var errors: [String] = []
        do {
            let session = try localSession { $0.proxy = .explicit(proxy) }
            let url = try #require(URL(string: "http://127.0.0.1:1/?token=s3cret"))
            if let error = await failure(session.dataTask(for: TransferRequest(url: url))) {
                errors = ["\(error)", String(reflecting: error), error.reason]
                var dumped = ""
                dump(error, to: &dumped)
                errors.append(dumped)
            }
        } catch { errors = ["\(error)"] }
        #expect(!errors.isEmpty && errors.allSatisfy { !$0.contains("s3cret") })
    }

    @Test func `errors, metrics and log lines contain no password, token, cookie or query`() async throws {
        let lines = Locked<[String]>([])
        let server = try TestServer { request in
            switch request.path {
            case "/redirect": .redirect(to: "/gone?token=s3cret")
            case "/gone": StubResponse(404, body: "no")
            case "/cut": StubResponse(body: .pattern(1000)).cut(afterBodyBytes: 10)
            case "/locked": .unauthorized("Basic realm=r")
            default: StubResponse(body: "x")
            }
        }
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration {
                $0.logger = Logger(label: "test") { _ in LogLines(lines: lines, isComplete: true) }
            },
            handlers: TransferHandlers(challenge: {
                $0.previousFailureCount < 2 ? .useCredential(Credential(user: "u", password: "s3cret")) : .cancel
            }),
            eventMonitors: [log])
        var printed: [String] = []
        for path in ["/", "/redirect", "/cut", "/locked", "/gone"] {
            let url = try #require(URL(string: "http://user:s3cret@127.0.0.1:\(server.port)\(path)?token=s3cret#s3cret"))
            var fields: HTTPFields = [.cookie: "session=s3cret"]
            if path != "/locked" { fields[.authorization] = "Bearer s3cret" }
            let task = session.dataTask(for: TransferRequest(url: url, headerFields: fields))
            do {
                let response = try await task.response
                try ResponseValidation().validate(response)
                printed += ["\(response.metrics)", String(reflecting: response.metrics), "\(response.metrics.transactions)"]
            } catch {
                var dumped = ""
                dump(error, to: &dumped)
                printed += ["\(error)", String(reflecting: error), dumped]
            }
            printed += ["\(task)", String(reflecting: task)]
        }
        session.cancel(afterTasks: true)
        _ = await log.awaitInvalidation()
        #expect(lines.withLock { $0.count } > 5)
        #expect((printed + lines.withLock { $0 }).allSatisfy { !$0.contains("s3cret") })
    }

    @Test func `a credential's description and dump do not contain its secret`() {
        for credential in [Credential(user: "u", password: "s3cret"), Credential(token: "s3cret")] {
            var dumped = ""
            dump(credential, to: &dumped)
            for text in [
                "\(credential)", String(reflecting: credential), dumped,
                "\(TransferHandlers.ChallengeDisposition.useCredential(credential))",
            ] {
                #expect(!text.contains("s3cret"), "\(text)")
            }
        }
    }

    @Test func `control characters in a server's reason phrase do not appear in errors`() async throws {
        let server = try TestServer { _ in
            var reply = StubResponse(500, body: "x")
            reply.reason = "a\u{1B}[31mb\u{7}"
            return reply
        }
        let (session, folder) = (try localSession(), try ScratchDirectory())
        let task = session.downloadTask(for: TransferRequest(url: server.url()), to: .init(folder.url("never")))
        let error = await failure(task)
        #expect(error?.reason.contains("\u{1B}") == false)
    }

    @Test func `descriptions and dumps of requests, responses, configurations, cookies and tokens contain no secret`()
        async throws
    {
        let server = try TestServer { _ in StubResponse(body: "s3cret").field("Set-Cookie", "a=s3cret") }
        let session = try localSession {
            $0.additionalHeaderFields[.authorization] = "Bearer s3cret"
            $0.proxy = .explicit("http://user:s3cret@127.0.0.1:\(server.port)")
        }
        let url = try #require(URL(string: "http://user:s3cret@127.0.0.1:1/?token=s3cret#s3cret"))
        let request = TransferRequest(
            url: url, method: .post, headerFields: [.authorization: "Bearer s3cret"], body: .data(Data("s3cret".utf8)))
        let task = session.dataTask(for: request)
        let response = try await task.response
        let cookies = try session.store.cookies
        expectEqual(cookies.count, 1)
        let store = CookieStore()
        try store.setCookie(Cookie(name: "a", value: "s3cret", domain: "host.example"))
        for thing in [
            request, session.configuration, SessionConfiguration.Proxy.explicit("http://user:s3cret@x:s3cret@h:1"), task, session,
            response, cookies, store, SessionConfiguration.CookieStorage.shared(store),
            BearerToken("s3cret"), BearerToken("s3cret", expiry: Date()),
        ] as [Any] {
            var dumped = ""
            dump(thing, to: &dumped)
            for text in ["\(thing)", String(reflecting: thing), dumped] {
                #expect(!text.contains("s3cret") && !text.isEmpty, "\(text)")
            }
        }
    }
}
