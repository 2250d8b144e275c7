import Expectations
import Testing

@testable import HTTPSession

struct HeadReaderTests {
    /// The result of reading the lines in order: `*` if a head begins, the status of a complete head, `!` for an error.
    private func read(_ lines: [String]) -> String {
        var (reader, result) = (HeadReader(), "")
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
        var reader = HeadReader()
        Array(line.utf8).withUnsafeBytes { line in
            for number in 1...4 { #expect(throws: Never.self, "\(number)") { try reader.skipTrailer(line) } }
            #expect(throws: HTTPSessionError.self) { try reader.skipTrailer(line) }
        }
    }
}
