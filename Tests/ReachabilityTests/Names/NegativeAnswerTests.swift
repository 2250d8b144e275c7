import Expectations
import Pacing
import Testing

@testable import Reachability

/// Answers without addresses: loops of aliases, and authorities (RFC 1035 section 4). The question's name is at 12, and `*` is a pointer to it.
@Suite struct NegativeAnswerTests {
    private func name(_ text: String) -> [UInt8] {
        text == "*" ? [0xc0, 12] : text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// A message with a question for the first name, and with records `OWNER TYPE DATA`.
    private func message(_ question: String, _ records: (String, UInt8, String)...) -> [UInt8] {
        let header: [UInt8] = [0, 1, 0x81, 0x80, 0, 1, 0, UInt8(records.count), 0, 0, 0, 0]
        return records.reduce(header + name(question) + [0, 1, 0, 1]) { bytes, record in
            let data = record.1 == 5 ? name(record.2) : Array(record.2.utf8)
            return bytes + name(record.0) + [0, record.1, 0, 1, 0, 0, 0, 60, 0, UInt8(data.count)] + data
        }
    }

    @Test func `an authority is the source of an answer with the flag AA, or with an SOA record in any section`() {
        var bytes = message("a.example", ("*", 5, "b"))
        #expect(!NegativeAnswer.isAuthoritative(bytes))
        bytes[2] |= 0x04
        #expect(NegativeAnswer.isAuthoritative(bytes))
        bytes = message("a.example", ("*", 5, "b"), ("*", 6, "soa"))
        #expect(NegativeAnswer.isAuthoritative(bytes))
        // One answer, and one record of the authority section.
        (bytes[7], bytes[9]) = (1, 1)
        #expect(NegativeAnswer.isAuthoritative(bytes))
        // The additional section does not count, and neither does a record that is cut off.
        (bytes[9], bytes[11]) = (0, 1)
        #expect(!NegativeAnswer.isAuthoritative(bytes))
        (bytes[9], bytes[11]) = (1, 0)
        #expect(!NegativeAnswer.isAuthoritative(bytes.dropLast()))
        #expect(!NegativeAnswer.isAuthoritative([UInt8]()))
    }

    @Test func `two aliases of each other are a loop`() {
        expectEqual(NegativeAnswer.aliasLoop(in: message("a.example", ("*", 5, "b"), ("b", 5, "*"))), ["a.example", "b"])
    }

    @Test func `an alias of itself is a loop of one name`() {
        expectEqual(NegativeAnswer.aliasLoop(in: message("A.example", ("*", 5, "a.EXAMPLE"))), ["a.example"])
    }

    @Test func `a loop behind an alias begins with its own first name, in any order of the records`() {
        let found = NegativeAnswer.aliasLoop(in: message("a", ("c", 5, "b"), ("x", 1, "1234"), ("b", 5, "c"), ("*", 5, "b")))
        expectEqual(found, ["b", "c"])
    }

    @Test func `aliases that end, and loops of other names, are no loop`() {
        expectNil(NegativeAnswer.aliasLoop(in: message("a", ("*", 5, "b"), ("b", 5, "c"))))
        expectNil(NegativeAnswer.aliasLoop(in: message("a", ("x", 5, "y"), ("y", 5, "x"))))
        expectNil(NegativeAnswer.aliasLoop(in: message("a")))
        expectNil(NegativeAnswer.aliasLoop(in: []))
    }

    /// A header with these flags, and the numbers of records in its sections.
    private func header(_ flags: UInt8, _ code: UInt8, _ counts: UInt8...) -> [UInt8] {
        [0, 1, 0x81 | flags, code, 0, 1] + counts.flatMap { [0, $0] }
    }

    @Test func `an answer without addresses is a referral if neither an authority nor a resolver gives it, as in glibc`() {
        #expect(NegativeAnswer.isReferral(header(0, 0, 0, 0, 0)))
        #expect(NegativeAnswer.isReferral(header(0, 0, 0, 2, 0)), "with name servers")
        let others: [(String, [UInt8])] = [
            ("AA", header(0x04, 0, 0, 0, 0)), ("TC", header(0x02, 0, 0, 0, 0)), ("RA", header(0, 0x80, 0, 0, 0)),
            ("REFUSED", header(0, 5, 0, 0, 0)), ("an answer", header(0, 0, 1, 0, 0)), ("glue", header(0, 0, 0, 2, 1)),
            ("cut", header(0, 0, 0, 0, 0).dropLast()),
        ]
        for (name, bytes) in others { #expect(!NegativeAnswer.isReferral(bytes), "\(name)") }
        #expect(NegativeAnswer.isReferral(([7] + header(0, 0, 0, 0, 0)).dropFirst()))
    }

    @Test func `bytes that no name has are escaped`() {
        expectEqual(NegativeAnswer.aliasLoop(in: message("a\u{1b}\\\u{7f} b", ("*", 5, "*"))), ["a\\027\\\\\\127\\032b"])
    }

    @Test func `pointers to themselves end`() {
        var bytes = message("ab", ("*", 5, "*"))
        let owner = 12 + 4 + 4
        bytes[owner + 1] = UInt8(owner)
        expectNil(NegativeAnswer.aliasLoop(in: bytes))
        bytes[12] = 0xc0
        expectNil(NegativeAnswer.aliasLoop(in: bytes))
        bytes = message("ab", ("b.*", 5, "*"))
        (bytes[owner + 2], bytes[owner + 3], bytes[owner + 4]) = (0xc0, UInt8(owner), 0)
        expectNil(NegativeAnswer.aliasLoop(in: bytes))
    }

    @Test func `messages that end anywhere or are damaged are read to their end`() {
        let seed = UInt64.random(in: .min ... .max)
        var dice = SplitMix64(seed: seed)
        let whole = message("a.example", ("*", 5, "b"), ("b", 5, "*"))
        for count in 0..<whole.count { expectNil(NegativeAnswer.aliasLoop(in: whole.prefix(count)), "\(count) bytes") }
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0..<4 {
                bytes[Int.random(in: 0..<bytes.count, using: &dice)] = UInt8.random(in: .min ... .max, using: &dice)
            }
            let found = NegativeAnswer.aliasLoop(in: bytes)
            #expect(found.map { !$0.isEmpty && $0.count <= 16 } ?? true, "seed \(seed)")
        }
    }
}
