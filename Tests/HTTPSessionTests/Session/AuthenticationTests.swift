import COpenSSL
import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import Testing

/// The value of `Authorization` for Basic (RFC 7617).
private func basic(_ user: String, _ password: String) -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
}

/// A server that requires the user and password by Basic.
private func basicServer(_ realm: String = "r", user: String = "user", password: String = "word") throws -> TestServer {
    try TestServer { request in
        guard request["authorization"] == basic(user, password) else {
            var reply = StubResponse.unauthorized("Basic realm=\"\(realm)\"")
            reply.body = "who are you?"
            return reply
        }
        return StubResponse(body: "\(request.method) \(request.text)")
    }
}

/// A server's side of Digest (RFC 7616 section 3.4).
private struct DigestServer: Sendable {
    var algorithm = "MD5"
    var quality = "auth"
    /// The challenge lines before and behind its own.
    var others: [String] = []
    var isProxy = false
    /// The nonces that are too old.
    var staleNonces: Set<String> = []
    var nonce = "n0nce"

    func hash(_ text: String) -> String {
        var digest = [UInt8](repeating: 0, count: 64)
        var count: UInt32 = 0
        let type =
            switch algorithm {
            case "SHA-256": EVP_sha256()
            case "SHA-512-256": EVP_sha512_256()
            default: EVP_md5()
            }
        EVP_Digest(Array(text.utf8), text.utf8.count, &digest, &count, type, nil)
        return digest.prefix(Int(count)).map { String(format: "%02x", $0) }.joined()
    }

    private func refusal(isStale: Bool = false) -> StubResponse {
        let own =
            #"Digest realm = "d", qop="\#(quality)", nonce="\#(nonce)", algorithm=\#(algorithm), opaque="o"\#(isStale ? ", stale=TRUE" : "")"#
        var reply = isProxy ? StubResponse.proxyAuthenticationRequired() : StubResponse.unauthorized()
        for line in others + [own] { reply = reply.field(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate", line) }
        return reply
    }

    func reply(to request: ReceivedRequest) -> StubResponse {
        guard let field = request[isProxy ? "proxy-authorization" : "authorization"],
            let credentials = AuthenticateField.challenges(in: field).first, credentials.scheme == "Digest"
        else { return refusal() }
        func value(_ name: String) -> String { credentials.parameters[name] ?? "" }
        guard !staleNonces.contains(value("nonce")) else { return refusal(isStale: true) }
        var subject = "\(request.method):\(value("uri"))"
        if value("qop") == "auth-int" { subject += ":\(hash(request.text))" }
        let expected = hash(
            [hash("user:d:word"), value("nonce"), value("nc"), value("cnonce"), value("qop"), hash(subject)].joined(
                separator: ":"))
        let isRight = value("response") == expected && value("nonce") == nonce && value("qop") == quality
        // A proxy gets the absolute form.
        guard isRight, isProxy || value("uri") == request.target else { return refusal() }
        return StubResponse(body: "\(request.method) \(request.text)")
    }
}

@Suite(.timeLimit(.minutes(20))) struct AuthenticationTests {
    private func answering(_ credential: Credential, asked: Counter = Counter()) -> TransferHandlers {
        TransferHandlers(challenge: { _ in
            asked.add()
            return .useCredential(credential)
        })
    }

    @Test func `a server that sends a challenge for another realm each time gets a limited number of answers`() async throws {
        let asked = Counter()
        let server = try TestServer { _ in .unauthorized("Basic realm=\"\(asked.add())\"") }
        var parts = try #require(URLComponents(url: server.url(), resolvingAgainstBaseURL: false))
        (parts.user, parts.password) = ("user", "word")
        let response = try await localSession().dataTask(for: TransferRequest(url: try #require(parts.url))).response
        expectEqual(response.statusCode, 401)
        expectEqual(server.requests.count, 21)
    }

    @Test func `without a challenge handler the 401 is the response`() async throws {
        let server = try basicServer()
        let response = try await localSession().dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.statusCode, 401)
        expectEqual(response.data, Data("who are you?".utf8))
        expectEqual(server.requests.count, 1)
    }

    @Test func `a user and password in the URL are sent after a challenge only`() async throws {
        let server = try basicServer(user: "us er", password: "w:o/rd")
        let url = try #require(URL(string: "http://us%20er:w%3Ao%2Frd@127.0.0.1:\(server.port)/x"))
        let response = try await localSession().dataTask(for: TransferRequest(url: url)).response
        expectEqual(response.statusCode, 200)
        expectEqual(server.requests.map { $0["authorization"] == nil }, [true, false])
        #expect(server.requests.allSatisfy { $0.target == "/x" && $0["host"] == "127.0.0.1:\(server.port)" })
        expectEqual(response.metrics.transactions.map(\.statusCode), [401, 200])
    }

    @Test func `a challenge handler's credential is sent with the body again, and stored after it is accepted`() async throws {
        let server = try basicServer()
        let asked = Counter()
        let store = CredentialStore()
        let session = try HTTPSessionManager(
            configuration: localConfiguration(), handlers: answering(Credential(user: "user", password: "word"), asked: asked),
            credentials: store)
        let upload = TransferRequest(url: server.url(), method: .post, body: .data(Data("body".utf8)))
        try await expectEqual(session.dataTask(for: upload).response.data, Data("POST body".utf8))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/again"))).response.data, Data("GET ".utf8))
        expectEqual(asked.count, 1)
        expectEqual(server.requests.filter { $0.method == "POST" }.map(\.text), ["body", "body"])
        let origin = try #require(Origin(server.url()))
        expectEqual(store[.init(origin: origin, realm: "r", isProxy: false)]?.user, "user")
    }

    @Test func `a credential with persistence none is requested from the handler for each task`() async throws {
        let server = try basicServer()
        let asked = Counter()
        let session = try localSession(
            handlers: answering(Credential(user: "user", password: "word", persistence: .none), asked: asked))
        for _ in 0..<2 {
            try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 200)
        }
        expectEqual(asked.count, 2)
    }

    @Test func `a wrong password gets another challenge with the count of failures, and is not stored`() async throws {
        let server = try basicServer()
        let counts = Locked<[Int]>([])
        let handlers = TransferHandlers(challenge: { challenge in
            counts.withLock { $0.append(challenge.previousFailureCount) }
            return .useCredential(
                Credential(
                    user: "user", password: challenge.previousFailureCount < 2 ? "wrong\(challenge.previousFailureCount)" : "word"
                ))
        })
        let store = CredentialStore()
        let session = try HTTPSessionManager(configuration: localConfiguration(), handlers: handlers, credentials: store)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 200)
        expectEqual(counts.withLock { $0 }, [0, 1, 2])
        let origin = try #require(Origin(server.url()))
        expectEqual(store[.init(origin: origin, realm: "r", isProxy: false)]?.secret, "word")
    }

    @Test func `credentials of the URL and of the store are sent once each before the handler is called`() async throws {
        let server = try basicServer()
        let store = CredentialStore()
        let origin = try #require(Origin(server.url()))
        store[.init(origin: origin, realm: "r", isProxy: false)] = Credential(user: "user", password: "old")
        let url = try #require(URL(string: "http://user:typo@127.0.0.1:\(server.port)/"))
        let log = EventLog()
        let session = try HTTPSessionManager(
            configuration: localConfiguration(), handlers: answering(Credential(user: "user", password: "word")),
            credentials: store, eventMonitors: [log])
        try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.statusCode, 200)
        expectEqual(
            server.requests.map { $0["authorization"] },
            [
                nil, basic("user", "typo"), basic("user", "old"), basic("user", "word"),
            ])
        // Monitors are notified of every challenge, whichever source answers it.
        session.cancel(afterTasks: true)
        await expectEqual(
            log.awaitInvalidation().filter { $0.hasPrefix("started") || $0.hasPrefix("challenged") },
            [
                "started 1", "challenged basic", "started 2", "challenged basic", "started 3", "challenged basic", "started 4",
            ])
    }

    @Test
    func `a challenge handler's cancel or unsuitable credential fails the task, other dispositions return the 401`()
        async throws
    {
        let server = try basicServer()
        func task(_ disposition: TransferHandlers.ChallengeDisposition) throws -> TransferTask {
            try localSession(handlers: TransferHandlers(challenge: { _ in disposition })).dataTask(
                for: TransferRequest(url: server.url()))
        }
        await expectEqual(failure(try task(.cancel))?.code, .authenticationFailed)
        await expectEqual(failure(try task(.useCredential(Credential(token: "t"))))?.code, .authenticationFailed)
        for disposition in [TransferHandlers.ChallengeDisposition.performDefaultHandling, .rejectProtectionSpace] {
            let response = try await task(disposition).response
            expectEqual(response.statusCode, 401)
            expectEqual(response.data, Data("who are you?".utf8))
        }
        #expect(server.requests.allSatisfy { $0["authorization"] == nil })
    }

    @Test func `after a challenge handler rejects a scheme the next scheme is offered`() async throws {
        let server = try TestServer { request in
            request["authorization"] == basic("user", "word")
                ? StubResponse(body: "in") : .unauthorized("Basic realm=b", "Digest realm=d, nonce=n", "Hoba x=y", "Bearer")
        }
        let schemes = Locked<[AuthenticationScheme]>([])
        let handlers = TransferHandlers(challenge: { challenge in
            schemes.withLock { $0.append(challenge.scheme) }
            return challenge.scheme == .basic
                ? .useCredential(Credential(user: "user", password: "word")) : .rejectProtectionSpace
        })
        try await expectEqual(
            localSession(handlers: handlers).dataTask(for: TransferRequest(url: server.url())).response.data,
            Data("in".utf8))
        expectEqual(schemes.withLock { $0 }, [.bearer, .digest, .basic])
    }

    @Test func `a challenge handler that never returns fails the task after the handler timeout`() async throws {
        let server = try basicServer()
        let handlers = TransferHandlers(challenge: { _ in
            try? await Task.sleep(for: .seconds(3600))
            return .cancel
        })
        let session = try localSession({ $0.handlerTimeout = .milliseconds(100) }, handlers: handlers)
        await expectEqual(failure(session.dataTask(for: TransferRequest(url: server.url())))?.code, .handlerTimedOut)
    }

    @Test func `a credential with a token is sent as Bearer`() async throws {
        let server = try TestServer {
            $0["authorization"] == "Bearer t0ken" ? StubResponse(body: "in") : .unauthorized("Bearer realm=\"x\"")
        }
        let session = try localSession(handlers: answering(Credential(token: "t0ken")))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("in".utf8))
    }

    @Test func `Digest never sends the password, with and without a body`() async throws {
        let lock = DigestServer()
        let server = try TestServer { lock.reply(to: $0) }
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word", persistence: .none)))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/a?b"))).response.data, Data("GET ".utf8))
        let made = Counter()
        let body = RequestBody.stream(length: nil) {
            made.add()
            return AsyncThrowingStream { continuation in
                continuation.yield(Data("a stream".utf8))
                continuation.finish()
            }
        }
        for body in [RequestBody.data(Data("memory".utf8)), body] {
            let response = try await session.dataTask(for: TransferRequest(url: server.url(), method: .put, body: body)).response
            expectEqual(response.statusCode, 200)
            #expect(String(decoding: response.data, as: UTF8.self).hasPrefix("PUT "))
            #expect(response.data.count > 4)
        }
        #expect(server.requests.allSatisfy { !($0["authorization"] ?? "").contains("word") })
    }

    @Test func `a surplus response behind a challenge is not taken for the response to its answer`() async throws {
        let lock = DigestServer()
        let server = try TestServer { request in
            let reply = lock.reply(to: request)
            guard request.connection == 1, request.numberOnConnection == 1 else { return reply }
            let challenge = reply.fields.first { $0.name.lowercased() == "www-authenticate" }?.value ?? ""
            // libcurl reads no more of the second piece than the body of the challenge.
            return .raw(
                StubBody([
                    .bytes(Array("HTTP/1.1 401 No\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 4\r\n\r\n".utf8)),
                    .wait(.delay(.milliseconds(20))), .bytes(Array("who?HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL".utf8)),
                ]))
        }
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word", persistence: .none)))
        for _ in 0..<2 {
            try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("GET ".utf8))
        }
        // The answer was not sent on the first connection.
        expectEqual(server.requests.filter { $0.connection == 1 }.map { $0["authorization"] ?? "none" }, ["none"])
    }

    @Test(arguments: ["MD5", "SHA-256", "SHA-512-256"], ["auth", "auth-int"])
    func `Digest is answered by each algorithm and quality, behind an unknown one, and with a body`(
        _ algorithm: String, _ quality: String
    ) async throws {
        let lock = DigestServer(
            algorithm: algorithm, quality: quality,
            others: [#"Digest realm="d", qop="auth", nonce="x", algorithm=SHA-1024"#, "Hoba max-age=1"])
        let server = try TestServer { lock.reply(to: $0) }
        let asked = Counter()
        let session = try localSession(
            handlers: answering(Credential(user: "user", password: "word", persistence: .none), asked: asked))
        let url = server.url("/a/./b/../c?d=e")
        try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("GET ".utf8))
        let put = TransferRequest(url: url, method: .put, body: .data(Data("text".utf8)))
        try await expectEqual(session.dataTask(for: put).response.data, Data("PUT text".utf8))
        // One request without credentials and one with them, for each task.
        expectEqual(asked.count, 2)
        expectEqual(server.requests.map { $0["authorization"] == nil }, [true, false, true, false])
    }

    @Test func `a handler is not asked about challenges that cannot be answered`() async throws {
        let server = try TestServer { _ in
            .unauthorized(#"Digest realm="d", nonce="n", algorithm=FOO"#, #"Digest realm="d", nonce="n", qop="auth-conf""#)
        }
        let asked = Counter()
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word"), asked: asked))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        expectEqual(asked.count, 0)
        // The hash of a body that is read only while it is sent is not known before (auth-int).
        let lock = DigestServer(quality: "auth-int")
        let other = try TestServer { lock.reply(to: $0) }
        let stream = RequestBody.stream(length: 0) { AsyncThrowingStream { nil } }
        let put = TransferRequest(url: other.url(), method: .put, body: stream)
        try await expectEqual(session.dataTask(for: put).response.statusCode, 401)
        expectEqual(asked.count, 0)
    }

    @Test func `a Digest nonce that is too old is renewed without another question`() async throws {
        let lock = Locked(DigestServer())
        let server = try TestServer { request in lock.withLock { $0 }.reply(to: request) }
        let (asked, failures) = (Counter(), Counter())
        let handlers = TransferHandlers(
            challenge: { challenge in
                asked.add()
                if challenge.previousFailureCount > 0 { failures.add() }
                // The nonce ages while the user types.
                lock.withLock { ($0.staleNonces, $0.nonce) = (["n0nce"], "n3xt") }
                return .useCredential(Credential(user: "user", password: "word", persistence: .none))
            })
        let session = try localSession(handlers: handlers)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("GET ".utf8))
        #expect(asked.count == 1 && failures.count == 0 && server.requests.count == 3)
    }

    @Test func `a server that calls every nonce too old gets a limited number of answers`() async throws {
        let count = Counter()
        let server = try TestServer { _ in .unauthorized(#"Digest realm="d", nonce="\#(count.add())", stale=true, qop=auth"#) }
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word")))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        #expect(server.requests.count < 30)
    }

    @Test func `a proxy's Digest challenge is answered by the session`() async throws {
        let lock = DigestServer(algorithm: "SHA-512-256", isProxy: true)
        let proxy = try TestServer { lock.reply(to: $0) }
        for user in ["", "user:wrong@"] {
            let session = try localSession(
                { $0.proxy = .explicit("http://\(user)127.0.0.1:\(proxy.port)") },
                handlers: answering(Credential(user: "user", password: "word", persistence: .none)))
            let url = try #require(URL(string: "http://named.example/a?b"))
            try await expectEqual(session.dataTask(for: TransferRequest(url: url)).response.data, Data("GET ".utf8), "\(user)")
        }
    }

    @Test func `a wrong Digest password gets another challenge`() async throws {
        let lock = DigestServer()
        let server = try TestServer { lock.reply(to: $0) }
        let handlers = TransferHandlers(challenge: { challenge in
            challenge.previousFailureCount > 1
                ? .performDefaultHandling
                : .useCredential(Credential(user: "user", password: "wrong\(challenge.previousFailureCount)"))
        })
        try await expectEqual(
            localSession(handlers: handlers).dataTask(for: TransferRequest(url: server.url())).response.statusCode,
            401)
    }

    @Test func `a credential for one origin is not sent to another after a redirect`() async throws {
        let other = try TestServer(at: .loopbackIPv6) { StubResponse(body: .text($0["authorization"] ?? "-")) }
        let server = try TestServer { request in
            request["authorization"] == nil ? .unauthorized("Basic realm=r") : .redirect(307, to: other.url().absoluteString)
        }
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word")))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("-".utf8))
        let url = try #require(URL(string: "http://user:word@127.0.0.1:\(server.port)/"))
        try await expectEqual(localSession().dataTask(for: TransferRequest(url: url)).response.data, Data("-".utf8))
    }

    @Test func `a refused Authorization field is replaced by the challenge handler's credential`() async throws {
        let server = try basicServer()
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word")))
        let request = TransferRequest(url: server.url(), headerFields: [.authorization: "Bearer expired"])
        try await expectEqual(session.dataTask(for: request).response.statusCode, 200)
        expectEqual(server.requests.map { $0.values("authorization") }, [["Bearer expired"], [basic("user", "word")]])
    }

    @Test func `a stream answers an authentication challenge`() async throws {
        let server = try basicServer()
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word", persistence: .none)))
        var data = Data()
        for try await chunk in session.streamTask(for: TransferRequest(url: server.url())).chunks { data.append(chunk) }
        expectEqual(data, Data("GET ".utf8))
    }

    @Test func `a refused credential is not sent again if the handler returns it again`() async throws {
        let server = try basicServer()
        let asked = Counter()
        let session = try localSession(handlers: answering(Credential(user: "user", password: "wrong"), asked: asked))
        let response = try await session.dataTask(for: TransferRequest(url: server.url())).response
        expectEqual(response.statusCode, 401)
        expectEqual(response.data, Data("who are you?".utf8))
        expectEqual(asked.count, 2)
        expectEqual(server.requests.count, 2)
    }

    @Test func `a credential refused without another challenge is not stored`() async throws {
        let server = try TestServer { request in
            request["authorization"] == nil ? .unauthorized("Basic realm=r") : StubResponse(401, body: "no")
        }
        let store = CredentialStore()
        let session = try HTTPSessionManager(
            configuration: localConfiguration(), handlers: answering(Credential(user: "user", password: "wrong")),
            credentials: store)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.statusCode, 401)
        let origin = try #require(Origin(server.url()))
        expectNil(store[.init(origin: origin, realm: "r")])
    }

    @Test func `a challenge whose body is truncated is still answered`() async throws {
        let server = try TestServer { request in
            guard request["authorization"] == nil else { return StubResponse(body: "in") }
            return StubResponse(401, fields: ["WWW-Authenticate": "Basic realm=r"], body: .pattern(1_000)).cut(
                afterBodyBytes: 100)
        }
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word")))
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url())).response.data, Data("in".utf8))
    }
}
