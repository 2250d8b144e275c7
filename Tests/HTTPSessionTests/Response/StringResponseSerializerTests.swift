import Expectations
import Foundation
import HTTPSession
import HTTPTypes
import Pacing
import Testing

@Suite struct StringResponseSerializerTests {
    let serializer = StringResponseSerializer()

    @Test(
        arguments: [
            (nil, [0xC3, 0xBC], "ü"), ("utf-8", [0xC3, 0xBC], "ü"), ("\"UTF-8\"", [0xEF, 0xBB, 0xBF, 0x61], "a"),
            ("ISO-8859-1", [0xFC], "ü"), ("iso-8859-15", [0xA4], "€"), ("windows-1252", [0x80], "€"),
            ("windows-1251", [0xCF], "П"),
            ("koi8-r", [0xC1], "а"), ("us-ascii", [0x61], "a"), ("utf-16", [0xFE, 0xFF, 0, 0x61], "a"),
            ("utf-16le", [0x61, 0], "a"),
            ("utf-16LE", [0xFF, 0xFE, 0x61, 0], "a"), ("utf-32be", [0, 0, 0, 0x61], "a"), ("shift_jis", [0x82, 0xA0], "あ"),
            ("gbk", [0xC4, 0xE3], "你"), ("big5", [0xA7, 0x41], "你"), ("euc-kr", [0xB0, 0xA1], "가"), ("utf-8", [], ""),
        ] as [(String?, [UInt8], String)])
    func `text is decoded in the character set that Content-Type names`(charset: String?, bytes: [UInt8], expected: String) throws
    {
        let type = charset.map { "text/plain; charset=\($0)" }
        try expectEqual(serializer.serialize(response(bytes, type: type)), expected)
    }

    @Test(
        arguments: [
            (nil, [0xFF]), ("utf-8", [0xC3]), ("utf-8", [0xED, 0xA0, 0x80]), ("us-ascii", [0x80]), ("utf-16le", [0x00, 0xD8]),
            ("utf-16", [0xFE, 0xFF, 0x61]), ("utf-32", [0, 0, 0]), ("windows-1252", [0x81]),
        ] as [(String?, [UInt8])])
    func `bytes that are invalid in the character set are an error`(charset: String?, bytes: [UInt8]) {
        let error = HTTPSessionError.thrown {
            try serializer.serialize(response(bytes, type: charset.map { "text/plain; charset=\($0)" }))
        }
        expectEqual(error?.code, .cannotDecodeContent)
    }

    @Test func `an unknown character set is an error that names it`() {
        let error = HTTPSessionError.thrown { try serializer.serialize(response("a", type: "text/plain; charset=klingon")) }
        expectEqual(error?.reason, "the character set \"klingon\" is not known")
    }

    @Test func `a serializer's encoding overrides the server's character set`() throws {
        let latin = StringResponseSerializer(encoding: .isoLatin1)
        try expectEqual(latin.serialize(response([0xFC], type: "text/plain; charset=klingon")), "ü")
    }

    @Test func `random bytes in any character set are decoded or an error`() {
        let charsets = [
            "utf-8", "utf-16", "utf-16le", "utf-32", "iso-8859-1", "iso-8859-15", "windows-1255", "koi8-r", "shift_jis",
            "iso-2022-jp",
            "big5", "euc-kr", "gb18030", "macintosh",
        ]
        for seed in (0..<4_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let charset = charsets.randomElement(using: &draws) ?? ""
            let bytes = (0..<Int.random(in: 0...24, using: &draws)).map { _ in UInt8.random(in: 0...255, using: &draws) }
            let error = HTTPSessionError.thrown { try serializer.serialize(response(bytes, type: "a/b; charset=\(charset)")) }
            #expect(error?.code == nil || error?.code == .cannotDecodeContent, "seed \(seed): \(charset)")
        }
    }
}
