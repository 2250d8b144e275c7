import Expectations
import Expressions
import Testing

@Suite struct ExpressionTests {
    private func matches(_ text: String, _ bytes: String) throws -> Bool { try Expression(text).matches(Array(bytes.utf8)) }

    @Test func `an expression is found anywhere in the bytes`() throws {
        #expect(try matches("status: (ok|fine)", "{ status: fine }"))
        #expect(try !matches("status: (ok|fine)", "{ status: bad }"))
        #expect(try matches("", ""))
        #expect(try !matches("^fine$", "not fine"))
        #expect(try Expression("b").matches([0x61, 0x62, 0x63][1...]))
        #expect(try !Expression("a").matches([0x61, 0x62, 0x63][1...]))
    }

    @Test func `a dot matches no line end without its flag`() throws {
        #expect(try !matches("a.b", "a\nb"))
        #expect(try matches("(?s)a.b", "a\nb"))
        #expect(try !matches("^b", "a\nb"))
        #expect(try matches("(?m)^b", "a\nb"))
        #expect(try matches("(?i)grösse", "GRÖSSE"))
    }

    @Test func `bytes are UTF-8, and an invalid byte matches no character`() throws {
        #expect(try matches("[äö]", "schön"))
        #expect(try !Expression("a.b").matches([0x61, 0xE4, 0x62]))
        #expect(try Expression("a\\Cb").matches([0x61, 0xE4, 0x62]))
        #expect(try Expression("b$").matches([0xFF, 0x00, 0x62]))
        #expect(try Expression("a\\x00b").matches([0x61, 0x00, 0x62]))
    }

    @Test(arguments: [
        ("a(b", "missing ): a(b"), ("a)", "unexpected ): a)"), ("[z-a]", "invalid character class range: z-a"),
        ("(?=a)", "invalid perl operator: (?="), ("\\1", "invalid escape sequence: \\1"),
        ("*", "no argument for repetition operator: *"), ("a{1001}", "invalid repetition size: {1001}"),
        ("(((a{100}){100}){100})", "invalid repetition size: {100}"), ("\\pL{1000}", "pattern too large - compile failed"),
        ("(\n", "missing ): (\u{FFFD}"),
        (String(repeating: "a", count: 4097), "the expression is longer than 4096 bytes"),
    ])
    func `an invalid expression is refused with a reason of one line`(text: String, reason: String) {
        let error = #expect(throws: Expression.ParseError.self) { try Expression(text) }
        expectEqual(error?.description, reason)
    }

    @Test func `a literal matches only itself`() throws {
        let literal = "1+1=2? [yes] (a|b)\\d {3} \0 ^größer$ \u{1F600}\n"
        let expression = try Expression(literal: literal)
        #expect(expression.matches(Array("say \(literal)!".utf8)))
        #expect(!expression.matches(Array("say \(literal.dropLast())".utf8)))
        #expect(try !Expression(literal: ".").matches(Array("a".utf8)))
    }

    @Test func `expressions are equal if their texts are equal`() throws {
        try expectEqual(Expression("a"), Expression("a"))
        #expect(try Expression("a") != Expression("b"))
        try expectEqual(Set([Expression("a"), Expression("a")]).count, 1)
    }

    // A search that tries all divisions of the bytes would take 2^65536 steps.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a+)+$", "(.*)*x$", "(a*)*b", "a.*a.*a.*a.*[^a!]$"])
    func `a search is linear in the bytes`(text: String) throws {
        let bytes = [UInt8](repeating: UInt8(ascii: "a"), count: 65_535) + [UInt8(ascii: "!")]
        #expect(try !Expression(text).matches(bytes))
    }

    @Test(.timeLimit(.minutes(1))) func `a search whose tables exceed the memory limit has the same result`() throws {
        // The states of the search are all sets of the last 14 characters.
        let expression = try Expression("a[ab]{14}c")
        var state: UInt64 = 1
        var bytes = (0..<65_536).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1
            return state >> 33 & 1 == 0 ? UInt8(ascii: "a") : UInt8(ascii: "b")
        }
        #expect(!expression.matches(bytes))
        bytes.replaceSubrange(65_519..., with: Array("aabbaabbaabbaabbc".utf8))
        #expect(expression.matches(bytes))
    }

    @Test func `threads share an expression`() async throws {
        let expression = try Expression("(a|b)+c[0-9]{3}$")
        let found = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<200).count { expression.matches(Array("x\(String(repeating: "ab", count: $0))c\(100 + task)".utf8)) }
                }
            }
            return await group.reduce(0, +)
        }
        expectEqual(found, 8 * 199)
    }
}
