import Expectations
import Testing

@testable import HTTPSession

struct HeadAssemblerTests {
    /// The result of reading the lines in order: `*` if a head begins, the status of a complete head, `!` for an error.
    private func read(_ lines: [String]) -> String {
        var (reader, result) = (HeadAssembler(), "")
        for line in lines {
            Array(line.utf8).withUnsafeBytes { line in
                if reader.begins(with: line) { result += "*" }
                do throws(HTTPSessionError) {
                    if let head = try reader.add(line) { result += "\(head.statusCode)" }
                } catch {
                    result += "!"
                }
            }
        }
        return result
    }

    @Test func `a response head is complete after an empty line that ends in CRLF or LF`() {
        expectEqual(read(["HTTP/1.1 200 OK\r\n", "A: b\r\n", "\r\n"]), "*200")
        expectEqual(read(["HTTP/1.1 204 No Content\n", "\n"]), "*204")
        expectEqual(read(["HTTP/2 200 \r\n", "HTTP/2 is a field: \r\n"]), "*")
    }

    /// The head of these lines.
    private func head(_ lines: String...) throws -> ResponseHead {
        var reader = HeadAssembler()
        var head: ResponseHead?
        for line in lines + [""] {
            try Array((line + "\r\n").utf8).withUnsafeBytes { line in
                _ = reader.begins(with: line)
                head = try reader.add(line) ?? head
            }
        }
        return try #require(head)
    }

    @Test func `a field that continues in the next lines has one value, with spaces at the ends of its lines`() throws {
        let head = try head(
            "HTTP/1.1 401 X", "WWW-Authenticate: Digest realm=\"r\",", "\tnonce=\"n\",", "  qop=auth", "Location:", " /next",
            "ETag: \"1\"", " \t", "Server: x")
        expectEqual(head.firstValue(of: "www-authenticate")?.split(separator: " ").count, 4)
        let challenge = AuthenticationChallenge.all(in: head, from: .unknown).first
        expectEqual(challenge?.parameters, ["realm": "r", "nonce": "n", "qop": "auth"])
        expectEqual(head.firstValue(of: "location"), "/next")
        expectEqual(head.firstValue(of: "etag"), "\"1\"")
        expectEqual(head.firstValue(of: "server"), "x")
        expectEqual(head.headerFields.count, 4)
        // A line break in a value reaches nobody.
        #expect(head.headerFields.allSatisfy { !$0.value.contains(where: \.isNewline) })
    }

    @Test(arguments: ["Content-Length", "Transfer-Encoding", "Content-Encoding"])
    func `a response whose framing or coding continues in the next line is refused`(_ name: String) throws {
        for lines in [["\(name): ", " 5"], ["\(name) : 5"], ["\(name): gzip,", "\tchunked", " x"]] {
            let text = (["HTTP/1.1 200 X"] + lines + ["A: b"])
            var reader = HeadAssembler()
            var head: ResponseHead?
            for line in text + [""] {
                try Array((line + "\r\n").utf8).withUnsafeBytes { line in
                    _ = reader.begins(with: line)
                    head = try reader.add(line) ?? head
                }
            }
            let complete = try #require(head)
            #expect(throws: HTTPSessionError.self, "\(lines)") { try ResponseFraming(complete, method: "GET") }
        }
    }

    @Test func `interim responses precede the response, and lines between them are ignored`() {
        expectEqual(read(["HTTP/1.1 103 Hints\r\n", "\r\n", "A: b\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "\r\n"]), "*103*200")
    }

    @Test func `a response head without a status is an error`() {
        expectEqual(read(["HTTP/1.1 OK\r\n", "\r\n"]), "*!")
        expectEqual(read(["A: b\r\n", "\r\n"]), "*!")
    }

    @Test func `the size of response heads and trailers is limited`() {
        let line = "A: " + String(repeating: "b", count: 65_531) + "\r\n"
        expectEqual(read(["HTTP/1.1 200 OK\r\n", line, line, line, line]), "*!")
        var reader = HeadAssembler()
        Array(line.utf8).withUnsafeBytes { line in
            for number in 1...4 { #expect(throws: Never.self, "\(number)") { try reader.skipTrailer(line) } }
            #expect(throws: HTTPSessionError.self) { try reader.skipTrailer(line) }
        }
    }
}
