import Expectations
import Foundation
import HTTPSession
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

/// Fields that may occur only once in a request (RFC 9110 section 5.3).
@Suite(.timeLimit(.minutes(20))) struct SingleFieldTests {
    private func name(_ text: String) throws -> HTTPField.Name { try #require(HTTPField.Name(text)) }

    @Test(arguments: [
        ("Host", "other.example"), ("User-Agent", "own/1"), ("Accept", "text/plain"), ("Accept-Encoding", "gzip"),
        ("Accept-Language", "de"),
        ("Authorization", "Bearer own"), ("Range", "bytes=0-1"), ("If-Range", "\"1\""), ("If-None-Match", "\"1\""),
        ("Referer", "http://a.example/"),
        ("Origin", "http://a.example"), ("Content-Type", "text/own"), ("Expect", "100-continue"), ("Cookie", "own=1"),
    ]) func `a field of the request replaces the one that the session would send`(_ field: String, _ value: String) async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession { configuration in
            for (name, value) in [
                ("Host", "session.example"), ("User-Agent", "session/1"), ("Accept", "session/1"), ("Accept-Encoding", "br"),
                ("Accept-Language", "en"),
                ("Authorization", "Bearer session"), ("Range", "bytes=9-"), ("If-Range", "\"9\""), ("If-None-Match", "\"9\""),
                ("Referer", "http://b.example/"), ("Origin", "http://b.example"), ("Content-Type", "text/session"),
                ("Expect", "x"), ("Cookie", "session=1"),
            ] { if let name = HTTPField.Name(name) { configuration.additionalHeaderFields[name] = value } }
        }
        let url = try #require(URL(string: server.url().absoluteString.replacing("://", with: "://user:word@")))
        var request = TransferRequest(url: url, method: .put, body: .data(Data("x".utf8)))
        request.options.sendsCredentialsPreemptively = true
        request.headerFields[try name(field)] = value
        _ = try await session.dataTask(for: request).response
        let received = try #require(server.requests.first)
        expectEqual(received.values(field), [value])
        for name in Set(received.fields.map { $0.name.lowercased() }) { expectEqual(received.values(name).count, 1, "\(name)") }
    }

    @Test func `a field that may occur once and occurs twice is refused, and a list is not`() async throws {
        let server = try TestServer { _ in StubResponse(body: "x") }
        let session = try localSession()
        for field in [
            "Host", "Authorization", "Content-Type", "Range", "If-Range", "User-Agent", "Referer", "Origin", "If-Modified-Since",
            "Idempotency-Key",
            "From", "Date", "Depth", "Destination", "If", "Lock-Token", "Overwrite", "Timeout", "SOAPAction", "traceparent",
            "Access-Control-Request-Method", "Sec-WebSocket-Key",
        ] {
            var fields = HTTPFields()
            for value in ["a", "a"] { fields.append(HTTPField(name: try name(field), value: value)) }
            fields.append(HTTPField(name: .accept, value: "b"))
            let error = await failure(session.dataTask(for: TransferRequest(url: server.url(), headerFields: fields)))
            expectEqual(error?.code, .invalidRequest, "\(field)")
            #expect(error?.reason.contains(field) == true)
            let refused = HTTPSessionError.thrown { try localSession { $0.additionalHeaderFields = fields } }
            expectEqual(refused?.code, .invalidConfiguration, "\(field)")
        }
        expectEmpty(server.requests)
        var lists = HTTPFields()
        for value in ["a/b", "c/d"] { lists.append(HTTPField(name: .accept, value: value)) }
        _ = try await session.dataTask(for: TransferRequest(url: server.url(), headerFields: lists)).response
        expectEqual(server.requests.map { $0.values("accept") }, [["a/b", "c/d"]])
    }

    @Test func `a download has one Accept-Encoding and one condition`() async throws {
        let folder = try ScratchDirectory()
        let server = try TestServer { request in
            request["if-none-match"] == "\"1\""
                ? StubResponse(304).field("ETag", "\"1\"") : StubResponse(body: "one").field("ETag", "\"1\"")
        }
        let session = try localSession {
            $0.additionalHeaderFields[.acceptEncoding] = "gzip"
            $0.additionalHeaderFields[.ifNoneMatch] = "\"session\""
        }
        var place = DownloadDestination(folder.url("file"), existingFile: .replace, partialFile: .keep)
        place.keepsValidator = true
        var request = TransferRequest(url: server.url("/file"))
        for _ in 0..<2 { _ = try await session.downloadTask(for: request, to: place).response }
        request.headerFields[.ifNoneMatch] = "\"own\""
        _ = try await session.downloadTask(for: request, to: place).response
        expectEqual(server.requests.map { $0.values("accept-encoding") }, [["identity"], ["identity"], ["identity"]])
        expectEqual(server.requests.map { $0.values("if-none-match") }, [["\"session\""], ["\"1\""], ["\"own\""]])
    }

    @Test(arguments: ["Bearer old", ""]) func `credentials that a server has asked for replace an Authorization field`(
        _ old: String
    ) async throws {
        let server = try TestServer { request in
            request["authorization"]?.hasPrefix("Basic ") == true ? StubResponse(body: "in") : .unauthorized("Basic realm=r")
        }
        let session = try localSession(
            handlers: TransferHandlers(challenge: { _ in .useCredential(Credential(user: "me", password: "word")) }))
        let request = TransferRequest(url: server.url(), headerFields: [.authorization: old])
        try await expectEqual(session.dataTask(for: request).response.data, Data("in".utf8))
        expectEqual(server.requests.map { $0.values("authorization").count }, [1, 1])
    }
}
