import Expressions
import Testing

@Suite struct ExpressionTests {
    @Test func `an expression matches anywhere in the bytes, also in those that are not UTF-8`() throws {
        let expression = try Expression("v[0-9]+\\.[0-9]+")
        #expect(expression.matches("version v1.25 of".utf8))
        #expect(!expression.matches("version 1".utf8))
        #expect(expression.matches([0xff, 0x00] + Array("v1.0".utf8)))
        #expect(try Expression("grün").matches("Ampel: grün".utf8))
        #expect(try Expression("").matches([]))
    }

    @Test func `an expression that is not valid has its reason in one line`() {
        for pattern in ["(", "*", "a{9999}", "(?<=a)b", "[", "\\", "((a{100}){100}){100}"] {
            let error = #expect(throws: Expression.SyntaxError.self) { try Expression(pattern) }
            #expect(error?.reason.isEmpty == false && error?.reason.contains("\n") == false, "\(pattern)")
        }
    }

    @Test func `nested repetitions need no time that grows with a power of the text`() throws {
        let expression = try Expression("^(([a-z])+.)+[A-Z]([a-z])+$")
        #expect(!expression.matches(Array(repeating: UInt8(ascii: "a"), count: 1 << 20)))
    }
}
