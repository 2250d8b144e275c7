import Expectations
import Foundation
import HTTPSessionTestKit
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSession

/// Fields whose values are not UTF-8: they are compared by their bytes, and sent as they were received.
@Suite(.timeLimit(.minutes(20))) struct FieldOctetsTests {
    /// The bytes of a text of characters up to U+00FF, one byte each.
    private static func octets(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

    /// A response of these lines, each character a byte.
    private static func response(_ lines: [String], _ body: StubBody = .empty) -> StubResponse {
        .raw(StubBody([.bytes(octets(lines.map { $0 + "\r\n" }.joined() + "\r\n"))] + body.segments))
    }

    private static func head(_ lines: String...) throws -> ResponseHead {
        try #require(ResponseHead(bytes: octets((lines + [""]).map { $0 + "\r\n" }.joined())))
    }

    private static let size: Int64 = 1_000_000

    /// The first 40 % of the first version, and then the second version: as the requested range, whatever If-Range says, or completely.
    private static func twoVersions(_ first: [String], _ second: [String]) throws -> TestServer {
        let count = Counter()
        return try TestServer { request in
            if count.add() == 1 {
                return response(["HTTP/1.1 200 OK", "Content-Length: \(size)"] + first, .pattern(size * 4 / 10))
            }
            guard let start = request["range"]?.dropFirst("bytes=".count).dropLast(), let offset = Int64(start) else {
                return response(["HTTP/1.1 200 OK", "Content-Length: \(size)"] + second, .zeros(size))
            }
            let range = "Content-Range: bytes \(offset)-\(size - 1)/\(size)"
            return response(
                ["HTTP/1.1 206 Partial Content", "Content-Length: \(size - offset)", range] + second, .zeros(size - offset))
        }
    }

    @Test(arguments: [
        ["ETag: \"\u{E9}\"", "ETag: \"\u{E8}\""],
        // The bytes of U+FFFD in UTF-8, by which invalid bytes are replaced in texts.
        ["ETag: \"\u{EF}\u{BF}\u{BD}\"", "ETag: \"\u{E8}\""], ["ETag: \"\u{E9}\"", "ETag: \"\u{EF}\u{BF}\u{BD}\""],
        // The same text in UTF-8 and in ISO 8859-1.
        ["ETag: \"\u{C3}\u{A9}\"", "ETag: \"\u{E9}\""], ["ETag: \"\u{E9}\"", "ETag: \"\u{C3}\u{A9}\""],
        // A carriage return, which becomes a space in texts.
        [
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:50:00 GMT",
            "Last-Modified: Sun,\r06 Nov 1994 08:49:37 GMT",
        ],
    ])
    func `a download that is cut is not joined with another version whose validator differs in a byte`(_ versions: [String])
        async throws
    {
        for partialFile in [DownloadDestination.PartialFilePolicy.remove, .keep] {
            let folder = try ScratchDirectory()
            let server = try Self.twoVersions([versions[0]], [versions[1]])
            let session = try localSession { $0.retryPolicy = RetryPolicy(baseDelay: .milliseconds(1)) }
            let destination = DownloadDestination(folder.url("file"), partialFile: partialFile)
            let response = try await session.downloadTask(for: TransferRequest(url: server.url()), to: destination).response
            try expectEqual(Data(contentsOf: folder.url("file")), Data(count: Int(Self.size)))
            expectEqual(response.metrics.bytesContinued, 0)
            expectEqual(folder.names, ["file"])
        }
    }

    @Test func `a validator with bytes that its text repairs confirms nothing`() throws {
        let url = try #require(URL(string: "http://host/file"))
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let complete = try Self.head(
            "HTTP/1.1 200 OK", "Content-Length: 100", "Last-Modified: \(date)", "Date: Mon, 07 Nov 1994 08:49:37 GMT")
        let resumption = try #require(Resumption(completeResponse: complete, from: url, now: Date()))
        let basis = try #require(resumption.basis(at: url))
        let range = "Content-Range: bytes 40-99/100"
        func decision(_ field: String) throws -> Resumption.Decision {
            resumption.decide(try Self.head("HTTP/1.1 206 X", range, "Last-Modified: \(field)"), received: 40, by: basis)
        }
        try expectEqual(decision(date), .append(total: 100))
        try expectEqual(decision("Sun,\r06 Nov 1994 08:49:37 GMT"), .restart)
        let sidecar = Sidecar(resumption: resumption, start: url, boot: "b")
        let file = try #require(FileValidator(sidecar, size: 100, modified: 0))
        #expect(try file.isConfirmed(by: Self.head("HTTP/1.1 304 X", "Last-Modified: \(date)")))
        #expect(try !file.isConfirmed(by: Self.head("HTTP/1.1 304 X", "Last-Modified: Sun,\r06 Nov 1994 08:49:37 GMT")))
        let repaired = try Self.head(
            "HTTP/1.1 200 OK", "Last-Modified: Sun,\r06 Nov 1994 08:49:37 GMT", "Date: Mon, 07 Nov 1994 08:49:37 GMT")
        expectNil(StrongValidator(repaired, now: Date()))
    }

    @Test func `the bytes of a Location that is not UTF-8 are requested as they were received`() async throws {
        let server = try TestServer { request in
            guard request.path == "/from" else { return StubResponse(body: .text(request.target)) }
            return Self.response(["HTTP/1.1 302 Found", "Content-Length: 0", "Location: /caf\u{E9}/?q=\u{E8}\u{80}#\u{E9}"])
        }
        let response = try await localSession().dataTask(for: TransferRequest(url: server.url("/from"))).response
        expectEqual(String(decoding: response.data, as: UTF8.self), "/caf%E9/?q=%E8%80")
    }

    @Test func `a Location in UTF-8 is escaped, and one whose host is not UTF-8 is refused`() throws {
        let request = TransferRequest(url: try #require(URL(string: "http://host/")))
        func target(_ location: String) throws -> String? {
            let head = try Self.head("HTTP/1.1 302 X", "Location: \(location)")
            guard case .follow(let next) = RedirectRules.decide(head, for: request, allowsInsecure: false) else { return nil }
            return next.url.absoluteString
        }
        try expectEqual(target("/caf\u{C3}\u{A9}"), "http://host/caf%C3%A9")
        try expectEqual(target("/caf\u{E9}"), "http://host/caf%E9")
        try expectNil(target("http://h\u{F6}st/"))
    }

    @Test func `the location of an upload that is not UTF-8 is requested as it was received`() throws {
        let head = try Self.head("HTTP/1.1 201 X", "Location: /up/\u{E9}")
        expectEqual(head.firstReference(of: "location"), "/up/%E9")
        expectNil(head.firstReference(of: "content-location"))
    }

    @Test func `realms that differ in a byte are different protection spaces`() throws {
        let origin = try #require(URL(string: "http://host/").flatMap { Origin($0) })
        func realm(_ text: String) throws -> String? {
            let head = try Self.head("HTTP/1.1 401 X", "WWW-Authenticate: Basic realm=\"\(text)\"")
            return AuthenticationChallenge.all(in: head, from: origin).first?.protectionSpace.realm
        }
        try expectEqual(realm("G\u{E4}ste"), "G\u{E4}ste")
        try expectEqual(realm("G\u{C3}\u{A4}ste"), "G\u{E4}ste")
        #expect(try realm("\u{E9}") != realm("\u{E8}"))
    }

    @Test func `a credential for one realm is not sent to a realm that differs in a byte`() async throws {
        let server = try TestServer { request in
            let realm = request.path == "/one" ? "\u{E9}" : "\u{E8}"
            guard request["authorization"] == nil else { return StubResponse(body: "in") }
            return Self.response(["HTTP/1.1 401 Unauthorized", "Content-Length: 0", "WWW-Authenticate: Basic realm=\"\(realm)\""])
        }
        let handlers = TransferHandlers(challenge: { challenge in
            challenge.protectionSpace.realm == "\u{E9}"
                ? .useCredential(Credential(user: "u", password: "p")) : .performDefaultHandling
        })
        let session = try localSession(handlers: handlers)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/one"))).response.statusCode, 200)
        try await expectEqual(session.dataTask(for: TransferRequest(url: server.url("/two"))).response.statusCode, 401)
    }
}
