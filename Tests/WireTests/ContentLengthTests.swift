import Expectations
import Testing
import Wire

@Suite struct ContentLengthTests {
    @Test(
        arguments: [
            ([], .absent), (["5"], .bytes(5)), (["0"], .bytes(0)), (["5, 5"], .bytes(5)), (["5", "5 ,\t05"], .bytes(5)),
            (["9223372036854775807"], .bytes(.max)), (["5, 6"], .conflicting), (["5", "6"], .conflicting),
        ] as [([String], ContentLength)])
    func `Content-Length values are digits up to 2^63 - 1, equal if repeated`(values: [String], length: ContentLength) {
        expectEqual(ContentLength(values.map(\.utf8)), length)
    }

    @Test(arguments: [
        "", " ", "+5", "-1", "5x", "0x5", "5 5", "5.", "5,", ",5", "9223372036854775808", "18446744073709551621",
        "99999999999999999999999999", "٥", "5\u{0}", "5\r",
    ])
    func `anything else is no Content-Length`(value: String) {
        expectEqual(ContentLength([value.utf8]), .malformed)
        expectEqual(ContentLength(["5".utf8, value.utf8]), .malformed)
    }
}
