import Expectations
import Pacing
import Testing

@testable import Reachability

/// Loops of aliases in messages (RFC 1035 section 4). The question's name is at 12, and `*` is a pointer to it.
@Suite struct AliasLoopTests {
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

    @Test func `two aliases of each other are a loop`() {
        expectEqual(AliasLoop.find(in: message("a.example", ("*", 5, "b"), ("b", 5, "*"))), ["a.example", "b"])
    }

    @Test func `an alias of itself is a loop of one name`() {
        expectEqual(AliasLoop.find(in: message("A.example", ("*", 5, "a.EXAMPLE"))), ["a.example"])
    }

    @Test func `a loop behind an alias begins with its own first name, in any order of the records`() {
        let found = AliasLoop.find(in: message("a", ("c", 5, "b"), ("x", 1, "1234"), ("b", 5, "c"), ("*", 5, "b")))
        expectEqual(found, ["b", "c"])
    }

    @Test func `aliases that end, and loops of other names, are no loop`() {
        expectNil(AliasLoop.find(in: message("a", ("*", 5, "b"), ("b", 5, "c"))))
        expectNil(AliasLoop.find(in: message("a", ("x", 5, "y"), ("y", 5, "x"))))
        expectNil(AliasLoop.find(in: message("a")))
        expectNil(AliasLoop.find(in: []))
    }

    @Test func `bytes that no name has are escaped`() {
        expectEqual(AliasLoop.find(in: message("a\u{1b}\\\u{7f} b", ("*", 5, "*"))), ["a\\027\\\\\\127\\032b"])
    }

    @Test func `pointers to themselves end`() {
        var bytes = message("ab", ("*", 5, "*"))
        let owner = 12 + 4 + 4
        bytes[owner + 1] = UInt8(owner)
        expectNil(AliasLoop.find(in: bytes))
        bytes[12] = 0xc0
        expectNil(AliasLoop.find(in: bytes))
        bytes = message("ab", ("b.*", 5, "*"))
        (bytes[owner + 2], bytes[owner + 3], bytes[owner + 4]) = (0xc0, UInt8(owner), 0)
        expectNil(AliasLoop.find(in: bytes))
    }

    @Test func `messages that end anywhere or are damaged are read to their end`() {
        let seed = UInt64.random(in: .min ... .max)
        var dice = SplitMix64(seed: seed)
        let whole = message("a.example", ("*", 5, "b"), ("b", 5, "*"))
        for count in 0..<whole.count { expectNil(AliasLoop.find(in: whole.prefix(count)), "\(count) bytes") }
        for _ in 0..<2_000 {
            var bytes = whole
            for _ in 0..<4 {
                bytes[Int.random(in: 0..<bytes.count, using: &dice)] = UInt8.random(in: .min ... .max, using: &dice)
            }
            let found = AliasLoop.find(in: bytes)
            #expect(found.map { !$0.isEmpty && $0.count <= 16 } ?? true, "seed \(seed)")
        }
    }
}
