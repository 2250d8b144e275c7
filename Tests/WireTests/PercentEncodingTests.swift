import Expectations
import Testing
import Wire

@Suite struct PercentEncodingTests {
    @Test(arguments: [
        ("AZaz09-._~", "AZaz09-._~"), ("a b/c?d", "a%20b%2Fc%3Fd"), ("%41", "%2541"), ("\u{e9}\r\n\0", "%C3%A9%0D%0A%00"),
        ("", ""),
    ])
    func `all but the unreserved characters are encoded, and decoded again`(text: String, encoded: String) {
        expectEqual(PercentEncoding.encode(text), encoded)
        expectEqual(PercentEncoding.decode(encoded), text)
    }

    @Test func `the caller decides which bytes are encoded`() {
        expectEqual(PercentEncoding.encode([0x61, 0xFF, 0x20]) { $0 >= 0x80 }, "a%FF ")
    }

    @Test(arguments: ["%", "%4", "%4g", "%+4", "%g4", "a%", "%FF", "%C3"])
    func `an invalid escape, or bytes that are no text, are not decoded`(text: String) {
        expectNil(PercentEncoding.decode(text))
    }
}
