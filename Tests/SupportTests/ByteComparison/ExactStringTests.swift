import ByteComparison
import Expectations
import Pacing
import Testing

@Suite struct ExactStringTests {
    /// Texts that Swift takes for equal: a composed and a decomposed form, a sign and its canonical equivalent, marks in another order.
    private static let forms = [
        ("\u{E9}", "e\u{301}"), ("\u{212A}", "K"), ("\u{37E}", ";"), ("\u{D55C}", "\u{1112}\u{1161}\u{11AB}"),
        ("q\u{307}\u{323}", "q\u{323}\u{307}"), ("\u{212B}", "\u{C5}"),
    ]

    @Test(arguments: forms) func `canonically equivalent strings are different keys`(_ one: String, _ other: String) {
        #expect(one == other)
        #expect(ExactString(one) != ExactString(other))
        #expect(!one.isExactly(other) && one.isExactly(String(decoding: Array(one.utf8), as: UTF8.self)))
        expectEqual(Set([ExactString(one), ExactString(other)]).count, 2)
        var files: [ExactString: Int] = [ExactString(one): 1]
        expectNil(files[ExactString(other)])
        files[ExactString(other)] = 2
        expectEqual(files[ExactString(one)], 1)
        #expect((one as String?).isExactly(one) && !(one as String?).isExactly(other) && !(one as String?).isExactly(nil))
        #expect((nil as String?).isExactly(nil) && [one].containsExactly(one) && ![one].containsExactly(other))
        #expect([one, one].isExactly([one, one]) && ![one, one].isExactly([one, other]) && ![one].isExactly([one, one]))
    }

    private struct Pair: Hashable {
        @ExactString var first: String
        @ExactString var second: String
    }

    @Test func `a type with wrapped members compares their bytes, and keeps the members apart in its hash`() {
        #expect(Pair(first: "\u{E9}", second: "") != Pair(first: "e\u{301}", second: ""))
        expectEqual(Pair(first: "ab", second: "c"), Pair(first: "ab", second: "c"))
        #expect(Pair(first: "ab", second: "c").hashValue != Pair(first: "a", second: "bc").hashValue)
    }

    @Test func `keys are equal, ordered and hashed as their bytes, for random texts of both forms`() {
        for seed in 0..<200 as Range<UInt64> {
            var random = SplitMix64(seed: seed)
            func text() -> String {
                (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    let form = Self.forms.randomElement(using: &random) ?? ("a", "b")
                    return [form.0, form.1, "a", "0123456789abcdef"].randomElement(using: &random) ?? ""
                }.joined()
            }
            let texts = (0..<40).map { _ in text() }
            for one in texts {
                for other in texts {
                    let (bytes, otherBytes) = (Array(one.utf8), Array(other.utf8))
                    let (key, otherKey) = (ExactString(one), ExactString(other))
                    guard (key == otherKey) == (bytes == otherBytes), one.isExactly(other) == (bytes == otherBytes),
                        bytes != otherBytes || key.hashValue == otherKey.hashValue,
                        (key < otherKey) == bytes.lexicographicallyPrecedes(otherBytes)
                    else {
                        Issue.record("seed \(seed): \(bytes) and \(otherBytes)")
                        return
                    }
                }
            }
            expectEqual(Set(texts.map { ExactString($0) }).count, Set(texts.map { Array($0.utf8) }).count)
        }
    }
}
