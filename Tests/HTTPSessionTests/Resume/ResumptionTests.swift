import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// The table of RFC 9110 section 15.3.7, line by line, and related cases.
struct ResumptionTests {
    private let url = URL(string: "https://host/file?signature=1") ?? URL(fileURLWithPath: "/")
    private let now = Date(timeIntervalSince1970: 1_795_000_000)

    private func head(_ status: Int, _ fields: String...) throws -> ResponseHead {
        let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return try #require(ResponseHead(bytes: Array(text.utf8)))
    }

    private func resumption(_ fields: String...) throws -> Resumption? {
        let text = "HTTP/1.1 200 OK\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return Resumption(completeResponse: try #require(ResponseHead(bytes: Array(text.utf8))), from: url, now: now)
    }

    private func tagged() throws -> Resumption { try #require(try resumption("Content-Length: 1000", "ETag: \"a\"")) }

    private let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"
    private func dated() throws -> Resumption {
        try #require(try resumption("Content-Length: 1000", modified, "Date: Sun, 06 Nov 1994 08:49:38 GMT"))
    }

    // MARK: Resumable downloads

    @Test func `a strong entity tag, or a date that is old enough, makes a download resumable`() throws {
        try expectEqual(tagged().validator, .entityTag("\"a\""))
        try expectEqual(tagged().total, 1_000)
        try expectEqual(dated().validator, .lastModified("Sun, 06 Nov 1994 08:49:37 GMT"))
        // The tag takes precedence over the date.
        try expectEqual(
            resumption("ETag: \"a\"", modified, "Date: Sun, 06 Nov 1994 08:49:38 GMT")?.validator, .entityTag("\"a\""))
        try expectNil(resumption("Transfer-Encoding: chunked", "ETag: \"a\"")?.total)
    }

    @Test func `a weak tag or a recent date makes no download resumable`() throws {
        try expectNil(resumption("Content-Length: 1000"))
        try expectNil(resumption("ETag: W/\"a\""))
        try expectNil(resumption("ETag: a"))
        try expectNil(resumption("ETag: \""))
        // A weak tag forbids the date beside it.
        try expectNil(resumption("ETag: W/\"a\"", modified, "Date: Sun, 06 Nov 1994 09:49:38 GMT"))
        try expectNil(resumption(modified))
        try expectNil(resumption(modified, "Date: Sun, 06 Nov 1994 08:49:37 GMT"))
        try expectNil(resumption("ETag: \"a\"", "Content-Encoding: gzip"))
        expectNil(Resumption(completeResponse: try head(203, "ETag: \"a\""), from: url, now: now))
    }

    @Test func `fields with two different values make no validator and join no bytes`() throws {
        try expectNil(resumption("ETag: \"a\"", "ETag: \"b\""))
        try expectNil(
            resumption(modified, "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT", "Date: Sun, 06 Nov 1994 09:49:38 GMT"))
        try expectEqual(resumption("ETag: \"a\"", "etag: \"a\"")?.validator, .entityTag("\"a\""))
        let (tagged, range, tag) = (try tagged(), "Content-Range: bytes 100-999/1000", "ETag: \"a\"")
        let basis = try #require(tagged.basis(at: url))
        func decide(_ status: Int, _ fields: String...) throws -> Resumption.Decision {
            let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
            return tagged.decide(try #require(ResponseHead(bytes: Array(text.utf8))), received: 100, by: basis)
        }
        try expectEqual(decide(206, range, tag, range, tag), .append(total: 1_000))
        try expectEqual(decide(206, range, tag, "ETag: \"b\""), .restart)
        try expectEqual(decide(206, range, tag, "Content-Range: bytes 0-899/1000"), .restart)
        try expectEqual(decide(206, range, tag, modified, "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT"), .restart)
    }

    @Test func `a validator belongs to one resource, whose query may differ with an entity tag`() throws {
        let tagged = try tagged()
        for same in ["https://host/file", "https://HOST/file?signature=2", "HTTPS://host/file#x"] {
            #expect(tagged.isSameResource(try #require(URL(string: same))), "\(same)")
        }
        for other in [
            "http://host/file", "https://other/file", "https://host:444/file", "https://host/file2", "https://host/%66ile",
        ] {
            #expect(!tagged.isSameResource(try #require(URL(string: other))), "\(other)")
        }
    }

    @Test func `a date belongs to a resource with the same query`() throws {
        let dated = try dated()
        #expect(dated.isSameResource(try #require(URL(string: "https://HOST/file?signature=1"))))
        for other in ["https://host/file", "https://host/file?signature=2", "https://host/file?"] {
            #expect(!dated.isSameResource(try #require(URL(string: other))), "\(other)")
        }
    }

    @Test func `the remaining range is requested under the validator, and a complete file is checked`() throws {
        try expectEqual(tagged().fieldLines(after: 400), ["Range: bytes=400-", "If-Range: \"a\""])
        try expectEqual(tagged().fieldLines(after: 1_000), ["If-None-Match: \"a\""])
        try expectEqual(dated().fieldLines(after: 1), ["Range: bytes=1-", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"])
        try expectEqual(dated().fieldLines(after: 1_000), ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"])
    }

    // MARK: 206

    @Test func `partial content of the same version is appended`() throws {
        let part = try head(206, "ETag: \"a\"", "Content-Range: bytes 400-999/1000")
        try expectEqual(tagged().decide(part, received: 400), .append(total: 1_000))
        let some = try head(206, "ETag: \"a\"", "Content-Range: bytes 400-499/1000")
        try expectEqual(tagged().decide(some, received: 400), .append(total: 1_000))
        let open = try head(206, "ETag: \"a\"", "Content-Range: bytes 400-999/*")
        try expectEqual(tagged().decide(open, received: 400), .append(total: 1_000))
    }

    @Test func `a total that was unknown is learned from partial content`() throws {
        let open = try #require(try resumption("ETag: \"a\"", "Transfer-Encoding: chunked"))
        expectEqual(
            open.decide(try head(206, "ETag: \"a\"", "Content-Range: bytes 4-9/10"), received: 4), .append(total: 10))
    }

    @Test(arguments: [
        ["ETag: \"b\"", "Content-Range: bytes 400-999/1000"],
        ["ETag: W/\"a\"", "Content-Range: bytes 400-999/1000"],
        ["Content-Range: bytes 400-999/1000"],
        ["ETag: \"a\"", "Content-Range: bytes 400-1099/1100"],
        ["ETag: \"a\"", "Content-Range: bytes 399-999/1000"],
        ["ETag: \"a\"", "Content-Range: bytes 401-999/1000"],
        ["ETag: \"a\"", "Content-Range: bytes 999-400/1000"],
        ["ETag: \"a\"", "Content-Range: lines 400-999/1000"],
        ["ETag: \"a\"", "Content-Type: multipart/byteranges; boundary=x"],
        ["ETag: \"a\"", "Content-Range: bytes 400-999/1000", "Content-Encoding: gzip"],
        ["ETag: \"a\"", "Content-Range: bytes 400-999/1000", "Content-Length: 700"],
        ["ETag: \"a\"", "Content-Range: bytes 400-1099/*"],
    ]) func `partial content that contradicts the known version restarts the download`(_ fields: [String]) throws {
        let text = "HTTP/1.1 206 X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        try expectEqual(tagged().decide(try #require(ResponseHead(bytes: Array(text.utf8))), received: 400), .restart)
    }

    @Test func `without any total, partial content does not tell the end`() throws {
        let open = try #require(try resumption("ETag: \"a\"", "Transfer-Encoding: chunked"))
        expectEqual(open.decide(try head(206, "ETag: \"a\"", "Content-Range: bytes 4-9/*"), received: 4), .restart)
    }

    @Test func `under a date, partial content needs the same date or the same total`() throws {
        let range = "Content-Range: bytes 400-999/1000"
        try expectEqual(dated().decide(try head(206, modified, range), received: 400), .append(total: 1_000))
        try expectEqual(dated().decide(try head(206, range), received: 400), .append(total: 1_000))
        try expectEqual(dated().decide(try head(206, "Content-Range: bytes 400-999/*"), received: 400), .restart)
        let later = "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT"
        try expectEqual(dated().decide(try head(206, later, range), received: 400), .restart)
    }

    // MARK: Other status codes

    @Test func `a complete response replaces the present bytes`() throws {
        for status in [200, 203, 204] { try expectEqual(tagged().decide(try head(status), received: 400), .replace) }
    }

    @Test func `416 may mean that the present bytes are complete`() throws {
        let completeHead = try head(416, "ETag: \"a\"", "Content-Range: bytes */400")
        let open = try #require(try resumption("ETag: \"a\"", "Transfer-Encoding: chunked"))
        expectEqual(open.decide(completeHead, received: 400), .complete)
        expectEqual(open.decide(completeHead, received: 401), .restart)
        expectEqual(open.decide(try head(416, "Content-Range: bytes */400"), received: 400), .restart)
        expectEqual(open.decide(try head(416, "ETag: \"b\"", "Content-Range: bytes */400"), received: 400), .restart)
        expectEqual(open.decide(try head(416, "ETag: \"a\""), received: 400), .restart)
        try expectEqual(tagged().decide(completeHead, received: 400), .restart)
    }

    @Test func `304 completes the download only if it asked whether the bytes are complete`() throws {
        try expectEqual(tagged().decide(try head(304), received: 1_000), .complete)
        try expectEqual(tagged().decide(try head(304), received: 400), .restart)
        // A server compares tags weakly here (RFC 9110 section 13.1.2).
        try expectEqual(tagged().decide(try head(304, "ETag: \"a\""), received: 1_000), .complete)
        for other in ["W/\"a\"", "\"b\""] {
            try expectEqual(tagged().decide(try head(304, "ETag: \(other)"), received: 1_000), .restart)
        }
        try expectEqual(tagged().decide(try head(412), received: 400), .restart)
    }

    // MARK: Digests

    private let digest = "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

    @Test func `with a digest, bytes may continue from another URL and without a validator`() throws {
        let digested = try #require(try resumption("Content-Length: 1000", digest))
        let other = try #require(URL(string: "https://mirror/file"))
        expectNil(digested.validator)
        expectEqual(digested.basis(at: url), .digest)
        expectEqual(digested.basis(at: other), .digest)
        try expectNil(tagged().basis(at: other))
        let both = try #require(try resumption("Content-Length: 1000", "ETag: \"a\"", digest))
        expectEqual(both.basis(at: url), .validator(.entityTag("\"a\"")))
        expectEqual(both.basis(at: other), .digest)
        expectEqual(both.fieldLines(after: 400, by: .digest), ["Range: bytes=400-"])
        // Another validator does not matter then; another length or digest does.
        let part = try head(206, "ETag: \"b\"", "Content-Range: bytes 400-999/1000")
        expectEqual(both.decide(part, received: 400, by: .digest), .append(total: 1_000))
        let longer = try head(206, "Content-Range: bytes 400-1000/1001")
        expectEqual(both.decide(longer, received: 400, by: .digest), .restart)
        let elsewhere = digest.replacingOccurrences(of: "47DE", with: "47DF")
        let otherwise = try head(206, elsewhere, "ETag: \"a\"", "Content-Range: bytes 400-999/1000")
        expectEqual(both.decide(otherwise, received: 400), .restart)
        expectEqual(both.decide(otherwise, received: 400, by: .digest), .restart)
        expectEqual(both.decide(try head(416, "Content-Range: bytes */1000"), received: 1_000, by: .digest), .complete)
    }

    @Test func `an error response keeps the present bytes`() throws {
        for status in [401, 403, 404, 408, 410, 429, 500, 503] {
            try expectEqual(tagged().decide(try head(status), received: 400), .keep)
        }
    }
}

extension Resumption {
    /// Decides about a response from the resumption's own URL.
    fileprivate func decide(_ head: ResponseHead, received: Int64) -> Decision {
        decide(head, received: received, by: basis(at: url) ?? .digest)
    }

    fileprivate func fieldLines(after received: Int64) -> [String] {
        fieldLines(after: received, by: basis(at: url) ?? .digest)
    }
}
