import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// The version of a finished file: what is stored of it, and which responses confirm it.
struct FileValidatorTests {
    private func known(
        _ validator: StrongValidator = .entityTag("\"a\""), at url: String = "https://host/file?signature=1",
        from start: String = "https://user:secret@host/start?id=1#part"
    ) throws -> FileValidator {
        let resumption = try #require(Resumption(url: self.url(url), validator: validator, total: nil, digest: nil))
        let sidecar = Sidecar(resumption: resumption, start: try self.url(start), boot: "this")
        return try #require(FileValidator(sidecar, size: 1_000, modified: 1_785_672_000_123_456_789))
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func head(_ status: Int, _ fields: String...) throws -> ResponseHead {
        let lines = ["HTTP/1.1 \(status) X"] + fields + ["", ""]
        return try #require(ResponseHead(bytes: Array(lines.joined(separator: "\r\n").utf8)))
    }

    private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test func `a stored validator is read again, and contains no URL`() throws {
        for validator in [StrongValidator.entityTag("\"a\u{1F600}\""), .lastModified(date)] {
            let known = try known(validator)
            let data = try #require(known.encoded())
            expectEqual(FileValidator(decoding: data), known)
            let text = String(decoding: data, as: UTF8.self)
            for secret in ["secret", "user:", "host", "signature"] { #expect(!text.contains(secret)) }
        }
    }

    @Test func `a validator longer than a file attribute may be is not stored`() throws {
        try expectNil(known(.entityTag("\"\(String(repeating: "a", count: 3_000))\"")).encoded())
    }

    @Test(arguments: [
        "", "{}", "[]", "\u{0}", #"{"version":1}"#,
        #"{"version":2,"start":"a","resource":"b","entity_tag":"\"a\"","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"\"a\"","size":-1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"\"a\"","size":1e99,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"W/\"a\"","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"\"a\"\r\nX: y","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"\"a\u0000\"","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","last_modified":"yesterday","size":1,"modified":1}"#,
        #"{"version":1,"start":"a","resource":"b","entity_tag":"\"a\"","last_modified":"Sun, 06 Nov 1994 08:49:37 GMT","size":1,"modified":1}"#,
    ]) func `a validator attribute that no download writes is not read`(_ text: String) {
        expectNil(FileValidator(decoding: Data(text.utf8)))
    }

    @Test func `a file of another URL is not taken for this URL's`() throws {
        let known = try known()
        let start = try url("https://host/start?id=1")
        #expect(try known.belongs(to: url("https://host/file?signature=1"), start: start))
        // The user requests the URL, and the fragment is not sent.
        #expect(try known.belongs(to: url("https://HOST/file?signature=2"), start: url("https://a:b@host/start?id=1#other")))
        #expect(try !known.belongs(to: url("https://host/file?signature=1"), start: url("https://host/start?id=2")))
        for other in ["https://host/file2", "http://host/file", "https://other/file", "https://host:444/file"] {
            #expect(try !known.belongs(to: url(other), start: start), "\(other)")
        }
        let dated = try self.known(.lastModified(date))
        #expect(try dated.belongs(to: url("https://host/file?signature=1"), start: start))
        #expect(try !dated.belongs(to: url("https://host/file?signature=2"), start: start))
    }

    @Test func `a 304 confirms the version that it names, or any if it names none`() throws {
        let tagged = try known()
        expectEqual(tagged.fieldLine, "If-None-Match: \"a\"")
        #expect(try tagged.isConfirmed(by: head(304, "ETag: \"a\"")))
        #expect(try tagged.isConfirmed(by: head(304)))
        #expect(try !tagged.isConfirmed(by: head(304, "ETag: \"b\"")))
        #expect(try !tagged.isConfirmed(by: head(304, "ETag: W/\"a\"")))
        #expect(try !tagged.isConfirmed(by: head(200, "ETag: \"a\"")))
        let dated = try known(.lastModified(date))
        expectEqual(dated.fieldLine, "If-Modified-Since: \(date)")
        #expect(try dated.isConfirmed(by: head(304, "ETag: \"b\"")))
        #expect(try dated.isConfirmed(by: head(304, "Last-Modified: \(date)")))
        // An older version has replaced this one.
        #expect(try !dated.isConfirmed(by: head(304, "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT")))
    }
}
