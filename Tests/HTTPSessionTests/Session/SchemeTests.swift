import EventLoop
import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// The schemes that libcurl implements: NTLM ([MS-NLMP]) and Negotiate (RFC 4559), and the schemes of URLs that HSTS upgrades.
@Suite(.timeLimit(.minutes(20))) struct SchemeTests {
    private func answering(_ credential: Credential, asked: Counter = Counter()) -> TransferHandlers {
        TransferHandlers(challenge: { _ in
            asked.add()
            return .useCredential(credential)
        })
    }

    @Test func `NTLM is answered by libcurl on one connection`() async throws {
        let server = try TestServer { request in
            guard let field = request["authorization"], field.hasPrefix("NTLM "),
                let message = Data(base64Encoded: String(field.dropFirst(5))), message.count > 12
            else { return .unauthorized("NTLM") }
            // [MS-NLMP] section 2.2.1: the ninth byte is the type of the message: 1 negotiate, 2 challenge, 3 authenticate.
            switch message[8] {
            case 1: return .unauthorized("NTLM TlRMTVNTUAACAAAAAAAAADgAAACGggEAq6U1NAWaJCIAAAAAAAAAAAAAAAA4AAAA")
            default:
                return String(decoding: message, as: UTF8.self).contains("user")
                    ? StubResponse(body: .text(request.text)) : StubResponse(403)
            }
        }
        let asked = Counter()
        let session = try localSession(handlers: answering(Credential(user: "user", password: "word"), asked: asked))
        for body in [RequestBody.none, .data(Data("body".utf8))] {
            let request = TransferRequest(url: server.url(), method: .post, body: body)
            let response = try await session.dataTask(for: request).response
            expectEqual(response.statusCode, 200)
            if case .data(let data) = body { expectEqual(response.data, data) }
        }
        expectEqual(asked.count, 1)
        #expect(server.requests.allSatisfy { !($0["authorization"] ?? "").contains("word") })
    }

    @Test(arguments: ["NTLM", "Negotiate"])
    func `a server that always sends an NTLM or Negotiate challenge gets a limited number of answers`(
        _ scheme: String
    ) async throws {
        let server = try TestServer { _ in
            var reply = StubResponse.unauthorized(scheme)
            reply.body = "no"
            return reply
        }
        let url = server.url()
        let credential = Credential(user: "user", password: "word")
        // Without credentials the 401 is the response.
        try await expectEqual(localSession().dataTask(for: TransferRequest(url: url)).response.statusCode, 401)
        // A credential that the handler returns twice is not sent twice.
        let stubborn = try localSession(handlers: answering(credential))
        try await expectEqual(stubborn.dataTask(for: TransferRequest(url: url)).response.statusCode, 401)
        // After one credential the handler declines, and the 401 is the response.
        let counts = Locked<[Int]>([])
        let modest = try localSession(
            handlers: TransferHandlers(challenge: { challenge in
                counts.withLock { $0.append(challenge.previousFailureCount) }
                return challenge.previousFailureCount == 0 ? .useCredential(credential) : .performDefaultHandling
            }))
        let response = try await modest.dataTask(for: TransferRequest(url: url)).response
        expectEqual(response.statusCode, 401)
        expectEqual(response.data, Data("no".utf8))
        expectEqual(counts.withLock { $0 }, [0, 1])
        // Credentials of the URL, with a body.
        let known = try #require(URL(string: "http://user:word@127.0.0.1:\(server.port)/"))
        let upload = TransferRequest(url: known, method: .put, body: .data(Data(count: 10_000)))
        try await expectEqual(localSession().dataTask(for: upload).response.statusCode, 401)
        // A bearer token cannot answer these challenges.
        let token = try localSession(handlers: answering(Credential(token: "t0ken")))
        await expectEqual(failure(token.dataTask(for: TransferRequest(url: url)))?.code, .authenticationFailed)
    }

    @Test func `an hstsFile in a missing directory is a configuration error`() throws {
        let folder = try ScratchDirectory()
        let error = HTTPSessionError.thrown { try localSession { $0.hstsFile = folder.url("none/hsts") } }
        #expect(error?.code == .invalidConfiguration && error?.reason.contains("hstsFile") == true)
    }

    @Test func `http requests that start at once are all upgraded to https by HSTS`() async throws {
        let certificate = try SelfSignedCertificate(names: ["secure.example"])
        let server = try TestServer(tls: certificate.serverTLS) { _ in
            StubResponse(body: "x").field("Strict-Transport-Security", "max-age=1000").closing()
        }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.securityPolicy = policy
            $0.hostOverrides = [.init(host: "secure.example", port: Int(server.port), addresses: ["127.0.0.1"])]
        }
        _ = try await session.dataTask(
            for: TransferRequest(url: try #require(URL(string: "https://secure.example:\(server.port)/")))
        )
        .response
        let plain = try #require(URL(string: "http://secure.example:\(server.port)/"))
        let tasks = (0..<20).map { _ in session.dataTask(for: TransferRequest(url: plain)) }
        for task in tasks { try await expectEqual(task.response.data, Data("x".utf8)) }
    }

    @Test func `an http URL is upgraded to https by HSTS each time that it is requested`() async throws {
        let certificate = try SelfSignedCertificate(names: ["secure.example"])
        let secure = try TestServer(tls: certificate.serverTLS) { _ in
            StubResponse(body: "secure").field("Strict-Transport-Security", "max-age=1000")
        }
        let plain = try TestServer { _ in StubResponse(body: "plain") }
        let policy = try SecurityPolicy.trusting(certificate)
        let session = try localSession {
            $0.securityPolicy = policy
            $0.hostOverrides = [
                .init(host: "secure.example", port: Int(secure.port), addresses: ["127.0.0.1"]),
                .init(host: "plain.example", port: Int(plain.port), addresses: ["127.0.0.1"]),
            ]
        }
        func body(_ url: String) async throws -> String {
            let task = session.dataTask(for: TransferRequest(url: try #require(URL(string: url))))
            return String(decoding: try await task.response.data, as: UTF8.self)
        }
        _ = try await body("https://secure.example:\(secure.port)/")
        for path in ["a", "a", "b", "a"] {
            try await expectEqual(body("http://secure.example:\(secure.port)/\(path)"), "secure")
            try await expectEqual(body("http://plain.example:\(plain.port)/\(path)"), "plain")
        }
        expectEqual(secure.requests.map(\.target), ["/", "/a", "/a", "/b", "/a"])
        expectEqual(plain.requests.map(\.target), ["/a", "/a", "/b", "/a"])
    }

    @Test func `an http URL is not upgraded to https if enforcesHSTS is false`() async throws {
        let certificate = try SelfSignedCertificate(names: ["secure.example"])
        let secure = try TestServer(tls: certificate.serverTLS) { _ in
            StubResponse(body: "x").field("Strict-Transport-Security", "max-age=1000")
        }
        let plain = try TestServer { _ in StubResponse(body: "plain") }
        let policy = try SecurityPolicy.trusting(certificate)
        for enforces in [true, false] {
            let session = try localSession {
                $0.securityPolicy = policy
                $0.enforcesHSTS = enforces
                $0.hostOverrides = [secure.port, plain.port].map {
                    .init(host: "secure.example", port: Int($0), addresses: ["127.0.0.1"])
                }
            }
            let first = try #require(URL(string: "https://secure.example:\(secure.port)/"))
            _ = try await session.dataTask(for: TransferRequest(url: first)).response
            let second = session.dataTask(
                for: TransferRequest(url: try #require(URL(string: "http://secure.example:\(plain.port)/"))))
            if enforces {
                await expectEqual(failure(second)?.code, .secureConnectionFailed)
            } else {
                try await expectEqual(second.response.data, Data("plain".utf8))
            }
        }
    }
}
