import Expectations
import Foundation
import Pacing
import Testing

@testable import HTTPSession

/// The file names that servers suggest in `Content-Disposition`.
struct ContentDispositionTests {
    @Test(arguments: [
        ("attachment; filename=a.txt", "a.txt"),
        ("inline;FILENAME=a.txt", "a.txt"),
        ("  attachment\t; filename = a.txt ; size=3 ;", "a.txt"),
        ("attachment;; filename=a.txt", "a.txt"),
        (#"attachment; filename="a b;c.txt""#, "a b;c.txt"),
        (#"attachment; filename="a\"b\;c.txt""#, #"a"b;c.txt"#),
        (#"attachment; filename="it's 50%25.txt""#, "it's 50%25.txt"),
        ("attachment; filename=a b.txt; x=y", "a b.txt"),
        ("attachment; filename=Отчет.pdf", "Отчет.pdf"),
        ("attachment; filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
        ("attachment; filename*=utf-8'en'%E2%82%AC.txt", "€.txt"),
        ("attachment; filename*=ISO-8859-1''%A3.txt", "£.txt"),
        (#"attachment; filename="EURO.txt"; filename*=UTF-8''%e2%82%ac.txt"#, "€.txt"),
        (#"attachment; filename*=UTF-8''%e2%82%ac.txt; filename="EURO.txt""#, "€.txt"),
        // An unreadable `filename*` leaves the plain name.
        (#"attachment; filename*=UTF-8''%ff%fe; filename="EURO.txt""#, "EURO.txt"),
        (#"attachment; filename*=KOI8-R''x; filename="EURO.txt""#, "EURO.txt"),
        (#"attachment; filename*="UTF-8''x.txt"; filename="EURO.txt""#, "EURO.txt"),
        (#"attachment; filename*=UTF-8''..; filename="EURO.txt""#, "EURO.txt"),
        // Only the last path component counts.
        ("attachment; filename=../../etc/passwd", "passwd"),
        (#"attachment; filename="/etc/passwd""#, "passwd"),
        (#"attachment; filename="C:\\temp\\a.txt""#, "a.txt"),
        ("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("attachment; filename*=UTF-8''..%5Ca.txt", "a.txt"),
        // A slash with a combining accent is a slash.
        ("attachment; filename*=UTF-8''a%2F%CC%81b", "\u{301}b"),
        // The name's user has to remove dangerous characters.
        ("attachment; filename=-rf", "-rf"),
        ("attachment; filename=x.netwatch-part", "x.netwatch-part"),
        ("attachment; filename*=UTF-8''a%00%0a%1b.txt", "a\u{0}\n\u{1b}.txt"),
    ])
    func `Content-Disposition names the file`(_ text: String, _ name: String) {
        expectEqual(ContentDisposition.fileName(text), name)
    }

    @Test(arguments: [
        "", ";", "attachment", "attachment;", "attachment; x=y", "; filename=a", "filename=a", "\"attachment\"; filename=a",
        "attachment filename=a", "attachment; filename", "attachment; filename=", "attachment; filename=;",
        #"attachment; filename="""#, #"attachment; filename="a"#, #"attachment; filename="a\"#, #"attachment; filename="a"b"#,
        "attachment; =a", "attachment; filename=a; filename=b", "attachment; filename=a; FileName=b",
        "attachment; filename*=UTF-8''a; filename*=UTF-8''b", "attachment; filename*=UTF-8'a", "attachment; filename*=a",
        "attachment; filename*=UTF-8''%", "attachment; filename*=UTF-8''%4", "attachment; filename*=UTF-8''%zz",
        "attachment; filename*=UTF-8''a b", "attachment; filename*=UTF-8''", "attachment; filename=..", "attachment; filename=.",
        "attachment; filename=a/", #"attachment; filename="a\\""#, "attachment; filename=/", "attachment; filename=a/..",
    ])
    func `Content-Disposition without a usable name names no file`(_ text: String) {
        expectNil(ContentDisposition.fileName(text))
    }

    @Test func `a long Content-Disposition is read completely`() {
        let name = String(repeating: "a", count: 10_000) + ".txt"
        expectEqual(ContentDisposition.fileName("attachment; filename=\"\(name)\""), name)
        expectNil(ContentDisposition.fileName("attachment; filename=\"\(name)"))
    }

    @Test func `two Content-Disposition fields name no file`() throws {
        let line = "Content-Disposition: attachment; filename=a"
        for (lines, name) in [([line], "a"), ([line, line], nil), ([], nil)] as [([String], String?)] {
            let text = (["HTTP/1.1 200 OK"] + lines + ["", ""]).joined(separator: "\r\n")
            let head = try #require(ResponseHead(bytes: Array(text.utf8)))
            expectEqual(ContentDisposition.fileName(of: head), name)
        }
    }

    @Test func `random Content-Disposition fields are read without a trap`() {
        let given = ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap { UInt64($0) }
        let seed = given ?? UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        let pieces = [
            "attachment", "filename", "filename*", "=", ";", "\"", "\\", "'", "%", "UTF-8", "''", "a", "/", "..", " ", "\t", "é",
            "%2f", "%ff",
        ]
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...12, using: &random)
            let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let name = ContentDisposition.fileName(text) ?? "a"
            #expect(!name.isEmpty && name != ".." && !name.contains("/"), "seed \(seed): \(text)")
        }
    }
}
