import CCurl
import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@testable import HTTPSession

/// Texts that Swift takes for equal (Unicode Standard Annex #15), and whose bytes differ on the wire and in files.
@Suite(.timeLimit(.minutes(10))) struct CanonicalEquivalenceTests {
    private let one = "\u{E9}"
    private let other = "e\u{301}"

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func head(_ lines: String...) throws -> ResponseHead {
        try #require(ResponseHead(bytes: Array((lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)))
    }

    // MARK: Requests

    @Test func `of two requests that differ in the form of a header value, each sends its own bytes`() async throws {
        let server = try TestServer { _ in StubResponse() }
        let session = try localSession()
        for value in [one, other, one] {
            var request = TransferRequest(url: server.url())
            request.headerFields[try #require(HTTPField.Name("X-Name"))] = value
            _ = try await session.dataTask(for: request).response
        }
        expectEqual(server.requests.map { Array(($0["x-name"] ?? "").utf8) }, [one, other, one].map { Array($0.utf8) })
    }

    @Test func `requests in different forms are prepared separately`() throws {
        let settings = try SessionSettings(SessionConfiguration(), credentials: CredentialStore(), path: nil)
        func prepared(_ change: (inout TransferRequest) throws -> Void) throws -> PreparedRequest {
            var request = TransferRequest(url: try url("https://example.com/a"))
            try change(&request)
            return TaskJob(request, .data, to: .memory(maximumSize: 1), settings: settings).prepared
        }
        let name = try #require(HTTPField.Name("X-Name"))
        let changes: [(String) -> (inout TransferRequest) throws -> Void] = [
            { text in { $0.headerFields[name] = text } },
            { text in { $0.url = try #require(URL(string: "https://example.com/\(text)")) } },
            { text in { $0.url = try #require(URL(string: "https://\(text):\(text)@example.com/")) } },
        ]
        for change in changes {
            let former = try prepared(change(one))
            #expect(try prepared(change(one)) === former)
            #expect(try prepared(change(other)) !== former)
        }
    }

    @Test func `a kept handle sends the URL of its attempt, whatever its form`() throws {
        let handle = try EasyHandle()
        defer { handle.cleanUp() }
        for text in [one, other, one] {
            try handle.set(url: "http://host/\(text)")
            expectEqual(Array((handle.string(CURLINFO_EFFECTIVE_URL) ?? "").utf8), Array("http://host/\(text)".utf8))
        }
        #expect(!TransferPlan(url: "http://host/", method: one).isSetUpLike(TransferPlan(url: "http://host/", method: other)))
        #expect(TransferPlan(url: "http://host/\(one)", method: "A") != TransferPlan(url: "http://host/\(other)", method: "A"))
        var periods = QuietPeriods()
        let connection = IdleSockets.Connection(
            remoteAddress: "192.0.2.1", remotePort: 80, localAddress: "192.0.2.2", localPort: 4_000)
        periods.begin(with: .init(connection), url: "http://\(one)/", now: 0)
        #expect(periods.end(for: "http://\(one)/", now: 1) != nil && periods.end(for: "http://\(other)/", now: 1) == nil)
    }

    // MARK: Credentials

    @Test func `a credential of one realm or host is not found for another form of its name`() throws {
        let origin = try #require(Origin(try url("https://example.com/")))
        func space(_ realm: String) -> AuthenticationChallenge.ProtectionSpace { .init(origin: origin, realm: realm) }
        let store = CredentialStore()
        store[space(one)] = Credential(user: "user", password: "word")
        expectNil(store[space(other)])
        #expect(store[space(one)] != nil && Set([space(one), space(other)]).count == 2)
        let origins = [one, other].map { Origin(scheme: "http", writtenHost: $0, port: nil) }
        expectEqual(Set(origins).count, 2)
        expectEqual(Set([one, other].map { TaskQueue.Host(scheme: "http", name: $0, port: 80, needsLookup: true) }).count, 2)
        expectEqual(Set([one, other].map { ServerTrustDecisions.Key(policy: 1, host: $0, chain: Data()) }).count, 2)
    }

    @Test func `a password is tried although another form of it was refused`() throws {
        let origin = try #require(Origin(try url("https://example.com/")))
        let challenge = AuthenticationChallenge(scheme: .basic, protectionSpace: .init(origin: origin, realm: "r"))
        var logins = TaskLogins()
        logins.use(Credential(user: "user", password: one), for: challenge)
        logins.refuse(challenge.protectionSpace)
        #expect(!logins.mayTry(Credential(user: "user", password: one), for: challenge))
        #expect(logins.mayTry(Credential(user: "user", password: other), for: challenge))
        #expect(!logins.wasRefused(Credential(user: "user", password: other), for: challenge))
        expectEqual(Set([one, other].map { Credential(token: $0) }).count, 2)
        expectEqual(Set([one, other].map { BearerToken($0) }).count, 2)
        let token = TokenLife(BearerToken(one), TokenRenewal(), at: Date())
        expectNil(token.usable(insteadOf: one, at: Date()))
        #expect(token.usable(insteadOf: other, at: Date()) != nil && token.usable(insteadOf: nil, at: Date()) != nil)
    }

    @Test func `cookies whose names or paths have different forms do not replace each other`() throws {
        func cookie(_ name: String, path: String = "/") -> Cookie {
            Cookie(name: name, value: "v", domain: "example.com", path: path)
        }
        expectEqual(Set([cookie(one).identity, cookie(other).identity]).count, 2)
        let asked = try url("http://example.com/a/b")
        #expect(cookie("a", path: "/a").matches(asked) && cookie("a", path: "/a/").matches(asked))
        #expect(!cookie("a", path: "/a/b/").matches(asked) && !cookie("a", path: "/a\(one)").matches(asked))
    }

    // MARK: Versions of a file

    @Test func `bytes are not joined if the entity tags of two versions differ in form alone`() throws {
        let file = try url("https://example.com/file")
        let complete = try head("HTTP/1.1 200 OK", "Content-Length: 1000", "ETag: \"\(one)\"")
        let known = try #require(Resumption(completeResponse: complete, from: file, now: Date()))
        let basis = try #require(known.basis(at: file))
        func decision(_ status: Int, _ tag: String) throws -> Resumption.Decision {
            let range = status == 206 ? "bytes 100-999/1000" : "bytes */100"
            let rules = status == 206 ? known : Resumption(url: file, validator: known.validator, total: 100, digest: nil)
            let head = try head("HTTP/1.1 \(status) X", "Content-Range: \(range)", "ETag: \"\(tag)\"")
            return try #require(rules).decide(head, received: 100, by: basis)
        }
        try expectEqual(decision(206, one), .append(total: 1_000))
        try expectEqual(decision(206, other), .restart)
        try expectEqual(decision(416, one), .complete)
        try expectEqual(decision(416, other), .restart)
        #expect(StrongValidator(entityTag: "\"\(one)\"") != StrongValidator(entityTag: "\"\(other)\""))
    }

    @Test func `an entity tag that is not UTF-8 is no validator, because its text may be that of another one`() throws {
        func validator(_ byte: UInt8) throws -> StrongValidator? {
            let bytes = Array("HTTP/1.1 200 OK\r\nETag: \"".utf8) + [byte] + Array("\"\r\n\r\n".utf8)
            return StrongValidator(try #require(ResponseHead(bytes: bytes)), now: Date())
        }
        try expectNil(validator(0xE8))
        try expectNil(validator(0xE9))
        try expectEqual(validator(0x41), .entityTag("\"A\""))
    }

    @Test func `a finished file is not confirmed by a tag in another form`() throws {
        let file = try url("https://example.com/file")
        let complete = try head("HTTP/1.1 200 OK", "Content-Length: 4", "ETag: \"\(one)\"")
        let resumption = try #require(Resumption(completeResponse: complete, from: file, now: Date()))
        let sidecar = Sidecar(resumption: resumption, start: file, boot: "b")
        let validator = try #require(FileValidator(sidecar, size: 4, modified: 0))
        #expect(try validator.isConfirmed(by: head("HTTP/1.1 304 X", "ETag: \"\(one)\"")))
        #expect(try !validator.isConfirmed(by: head("HTTP/1.1 304 X", "ETag: \"\(other)\"")))
    }

    @Test func `field lines that differ in form alone are different values`() throws {
        #expect(try head("HTTP/1.1 200 OK", "ETag: \(one)", "ETag: \(other)").hasDifferentValues(of: "etag"))
        #expect(try !head("HTTP/1.1 200 OK", "ETag: \(one) ", "ETag: \t\(one)").hasDifferentValues(of: "etag"))
        let invalid =
            Array("HTTP/1.1 200 OK\r\nETag: ".utf8) + [0xE8] + Array("\r\nETag: ".utf8) + [0xE9, 0x0D, 0x0A, 0x0D, 0x0A]
        #expect(try #require(ResponseHead(bytes: invalid)).hasDifferentValues(of: "etag"))
    }
}
