import Expectations
import Pacing
import Testing
import Wire

/// Each test is a transcript: the bytes of a server, and what they mean. ReachabilityTests has the excerpts and the limits of probes.
@Suite struct HTTPResponseReaderTests {
    private static let limits = HTTPResponseReader.Limits(
        head: 256, fields: 4, interimResponses: 2, body: 16, knownBody: 32, chunkLine: 16, chunkFraming: 64, trailers: 32)

    /// The events in order: `200` for a head, the bytes of the body, `.` for the end, `!field` for a failure, `…` if more bytes are awaited.
    private static func transcript(
        _ text: String, _ grammar: HTTPResponseReader.Grammar, to method: String = "GET", closes: Bool = false, size: Int = .max
    ) -> String {
        var reader = HTTPResponseReader(method: method, grammar, limits: limits)
        var (transcript, body, remaining) = ("", "", Array(text.utf8)[...])
        func flush() {
            if !body.isEmpty { transcript += " '\(body)'" }
            body = ""
        }
        func note(_ event: HTTPResponseReader.Event) {
            switch event {
            case .head(let head): transcript += "\(head.status)"
            case .body(let piece): body += String(decoding: piece, as: UTF8.self)
            case .end:
                flush()
                transcript += " ."
            }
        }
        do {
            while !remaining.isEmpty {
                try remaining.prefix(size).withUnsafeBytes { bytes in
                    var input = bytes[...]
                    while let event = try reader.next(&input) { note(event) }
                }
                remaining = remaining.dropFirst(size)
            }
            if closes, let event = try reader.endOfInput() { note(event) }
        } catch {
            flush()
            return transcript
                + " !\((error as? HTTPResponseReader.Failure)?.rawValue ?? "\(error)")\(reader.limit.map { ":\($0)" } ?? "")"
        }
        flush()
        if !transcript.hasSuffix(" .") { transcript += " …" }
        return transcript + (reader.limit.map { ":\($0)" } ?? "")
    }

    private func expectTranscript(
        _ text: String, _ grammar: HTTPResponseReader.Grammar, to method: String = "GET", closes: Bool = false, _ expected: String
    ) {
        for size in [Int.max, 1, 2, 3, 7] {
            expectEqual(Self.transcript(text, grammar, to: method, closes: closes, size: size), expected)
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"

    @Test(arguments: [HTTPResponseReader.Grammar.lenient, .strict])
    func `what a sender may generate has the same meaning in both grammars`(grammar: HTTPResponseReader.Grammar) {
        let (ok, chunked) = (Self.ok, Self.chunked)
        expectTranscript(ok + "Content-Length: 5\r\n\r\nhello, more", grammar, "200 'hello' .")
        expectTranscript(ok + "Content-Length: 0\r\n\r\n", grammar, "200 .")
        expectTranscript(ok + "Content-Length: 5\r\n\r\nhell", grammar, "200 'hell' …")
        expectTranscript(ok + "Content-Length: 5\r\n\r\nhell", grammar, closes: true, "200 'hell' !truncated-body")
        expectTranscript(ok + "\r\nhello", grammar, "200 'hello' …")
        expectTranscript(ok + "\r\nhello", grammar, closes: true, "200 'hello' .")
        expectTranscript(ok + "Content-Length: 5\r\n\r\n", grammar, to: "HEAD", "200 .")
        expectTranscript("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", grammar, "304 .")
        expectTranscript("HTTP/1.0 204 \r\n\r\n", grammar, "204 .")
        expectTranscript("HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n\(ok)Content-Length: 1\r\n\r\na", grammar, "200 'a' .")
        expectTranscript(
            chunked + "5\r\nhello\r\n002;a=b\r\n, \r\n9\r\n012345678\r\n0\r\n\r\nmore", grammar, "200 'hello, 012345678' .")
        expectTranscript(chunked + "5\r\nhello\r\n0\r\nA: b\r\n\r\n", grammar, "200 'hello' .")
        expectTranscript(chunked + "5\r\nhello\r\n", grammar, closes: true, "200 'hello' !truncated-body")
    }

    @Test(arguments: [
        // A bare LF ends a line.
        ("HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\na", "200 'a' .", " !status-line"),
        (ok + "Content-Length: 1\n\r\na", "200 'a' .", " !field"), (ok + "Content-Length: 1\r\n\na", "200 'a' .", " !field"),
        (chunked + "1\na\r\n0\r\n\r\n", "200 'a' .", "200 !chunk"),
        (chunked + "1\r\na\n0\r\n\r\n", "200 'a' .", "200 'a' !chunk"),
        (chunked + "0\r\nA: b\n\r\n", "200 .", "200 !field"),
        // A bare CR, NUL and control characters.
        (ok + "A: b\rc\r\n\r\n", " !field", " !field"), (ok + "A: b\0\r\n\r\n", " !field", " !field"),
        (ok + "A: b\u{1}\r\nContent-Length: 0\r\n\r\n", "200 .", " !field"),
        (chunked + "1\r\na\r\r\n", "200 'a' !chunk", "200 'a' !chunk"),
        // Folded fields, and blanks before a colon.
        (ok + "Content-Length: 1\r\n 1\r\n\r\n", "200 !length", " !field"), (ok + " A: b\r\n\r\n", " !field", " !field"),
        (ok + "Content-Length : 1\r\n\r\na", "200 'a' .", " !field"),
        // Several lengths.
        (ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "200 'a' .", "200 !length"),
        (ok + "Content-Length: 1, 1\r\n\r\na", "200 'a' .", "200 !length"),
        (ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", "200 !length", "200 !length"),
        (ok + "Content-Length: +1\r\n\r\na", "200 !length", "200 !length"),
        // Transfer-Encoding beside a length, twice, with HTTP/1.0, or with another coding.
        (ok + "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 .", "200 !transfer-encoding"),
        (
            ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "200 !transfer-encoding",
            "200 !transfer-encoding"
        ),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 .", "200 !transfer-encoding"),
        (ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "200 .", "200 !transfer-encoding"),
        (ok + "Transfer-Encoding: xchunked\r\n\r\n0", "200 '0' …", "200 !transfer-encoding"),
        // Chunks.
        (chunked + "1 \r\na\r\n0\r\n\r\n", "200 'a' .", "200 !chunk"), (chunked + "0x1\r\n", "200 !chunk", "200 !chunk"),
        (chunked + "-1\r\n", "200 !chunk", "200 !chunk"), (chunked + "1\r\nab", "200 'a' !chunk", "200 'a' !chunk"),
        (chunked + "fffffffffffffff1\r\n", "200 !limit:chunkLine", "200 !limit:chunkLine"),
        // Status lines.
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 .", " !status-line"),
        ("HTTP/1.1 2000 OK\r\n\r\n", " !status-line", " !status-line"), ("HTTP/2 200\r\n\r\n", " !version", " !version"),
        ("SSH-2.0-x\r\n", " !not-http", " !not-http"), ("HTTP/1.1 101 Upgrade\r\n\r\n", " !upgrade", " !upgrade"),
    ])
    func `what common clients tolerate is refused by the strict grammar`(text: String, lenient: String, strict: String) {
        expectTranscript(text, .lenient, lenient)
        expectTranscript(text, .strict, strict)
    }

    @Test func `a cut trailer section is tolerated by the lenient grammar alone`() {
        expectTranscript(Self.chunked + "0\r\nA: b\r\n", .lenient, closes: true, "200 .")
        expectTranscript(Self.chunked + "0\r\nA: b\r\n", .strict, closes: true, "200 !truncated-body")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 300), " !limit:head"),
        (ok + "A: b\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", " !limit:fields"),
        (String(repeating: "HTTP/1.1 100 C\r\n\r\n", count: 3), " !limit:interimResponses"),
        (ok + "\r\n" + String(repeating: "a", count: 17), "200 '\(String(repeating: "a", count: 16))' !limit:body"),
        (
            ok + "Content-Length: 99\r\n\r\n" + String(repeating: "a", count: 99),
            "200 '\(String(repeating: "a", count: 32))' .:knownBody"
        ),
        (chunked + "1;" + String(repeating: "e", count: 20), "200 !limit:chunkLine"),
        (chunked + String(repeating: "1;aaaaaaa\r\na\r\n", count: 9), "200 'aaaaa' !limit:chunkFraming"),
        (chunked + "0\r\n" + String(repeating: "A: b\r\n", count: 9), "200 !limit:trailers"),
    ])
    func `the limits of the caller end a response`(text: String, expected: String) {
        for grammar in [HTTPResponseReader.Grammar.lenient, .strict] { expectTranscript(text, grammar, expected) }
    }

    @Test func `input behind the end of a response, or behind a failure, is left to the caller`() throws {
        for (text, rest) in [(Self.ok + "Content-Length: 1\r\n\r\nabc", 2), (Self.chunked + "0\r\n\r\nabc", 3)] {
            var reader = HTTPResponseReader(method: "GET", .strict, limits: Self.limits)
            try Array(text.utf8).withUnsafeBytes { bytes in
                var input = bytes[...]
                while try reader.next(&input) != nil {}
                expectEqual(input.count, rest)
                expectEqual(reader.receivedBytes, bytes.count - rest)
            }
            expectNil(try reader.endOfInput())
        }
        var reader = HTTPResponseReader(method: "GET", .strict, limits: Self.limits)
        Array("HTTP/2 200\r\nabc".utf8).withUnsafeBytes { bytes in
            var input = bytes[...]
            #expect(throws: HTTPResponseReader.Failure.version) { _ = try reader.next(&input) }
            expectEqual(input.count, 3)
            expectNil(try? reader.next(&input))
        }
        expectEqual(reader.invalidBytes, Array("HTTP/2 200".utf8))
    }

    @Test func `the strict grammar accepts nothing that the lenient one refuses`() {
        let texts = [
            Self.ok + "Content-Length: 5\r\nA: b\r\n\r\nhello", Self.chunked + "5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\n",
            "HTTP/1.1 103 Hints\r\nA: b\r\n\r\n\(Self.ok)\r\nhello",
        ]
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        for round in 0..<4000 {
            var bytes = Array(texts[Int.random(in: 0..<texts.count, using: &random)].utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = [0, 9, 10, 13, 32, 43, 44, 48, 58, 59, 97].randomElement(using: &random) ?? 0
                case 1: bytes.remove(at: index)
                default: bytes.insert(contentsOf: bytes[index...].prefix(30), at: index)
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let (strict, lenient) = (Self.transcript(text, .strict), Self.transcript(text, .lenient))
            if !strict.contains("!"), strict != lenient {
                Issue.record("seed \(seed) round \(round): strict \(strict), lenient \(lenient): \(text.debugDescription)")
            }
        }
    }
}
