import Expectations
import Foundation
import HTTPSession
import Pacing
import Testing

/// The character sets of ``StringResponseSerializer``. The bytes come from Python's codecs.
@Suite struct CharsetTests {
    private let serializer = StringResponseSerializer()

    @Test(
        arguments: [
            ("utf-8", [0xC3, 0xBC], "ü"), ("utf8", [0xC3, 0xBC], "ü"), ("us-ascii", [0x61], "a"), ("ascii", [0x61], "a"),
            ("iso-8859-1", [0xFC], "ü"), ("iso_8859-1", [0xFC], "ü"), ("latin1", [0xFC], "ü"), ("l1", [0xFC], "ü"),
            ("utf-16", [0xFE, 0xFF, 0, 0xFC], "ü"), ("utf-16be", [0x00, 0xFC, 0xD8, 0x3D, 0xDE, 0x00], "ü😀"),
            ("utf-16le", [0xFC, 0], "ü"), ("utf-32", [0, 0, 0xFE, 0xFF, 0, 0, 0, 0xFC], "ü"), ("utf-32be", [0, 0, 0, 0xFC], "ü"),
            ("utf-32le", [0xFC, 0x00, 0x00, 0x00, 0x00, 0xF6, 0x01, 0x00], "ü😀"),
            ("iso-8859-2", [0xA3, 0xF3, 0x64, 0xBC], "Łódź"), ("latin2", [0xBE], "ž"),
            ("iso-8859-5", [0xBF, 0xE0, 0xD8, 0xD2, 0xD5, 0xE2], "Привет"),
            ("iso-8859-7", [0xC1, 0xE8, 0xDE, 0xED, 0xE1], "Αθήνα"),
            ("iso-8859-9", [0xF0, 0xFC, 0xFE], "ğüş"), ("iso-8859-15", [0xA4, 0xBD], "€œ"),
            ("windows-1250", [0x8E, 0x6C, 0x75, 0x9D, 0x6F, 0x75, 0xE8, 0x6B, 0xFD], "Žluťoučký"),
            ("windows-1251", [0xCF, 0xF0, 0xE8, 0xE2, 0xE5, 0xF2], "Привет"),
            ("windows-1252", [0x93, 0x80, 0x94, 0x20, 0xDF], "“€” ß"),
            ("windows-1253", [0xC1, 0xE8, 0xDE, 0xED, 0xE1], "Αθήνα"), ("windows-1254", [0xF0, 0x80], "ğ€"),
            ("windows-1255", [0xF9, 0xEC, 0xE5, 0xED], "שלום"), ("windows-1256", [0xD3, 0xE1, 0xC7, 0xE3], "سلام"),
            ("windows-1257", [0xC0, 0xFE, 0x75, 0x6F, 0x6C, 0x61, 0x73], "Ąžuolas"),
            ("koi8-r", [0xF0, 0xD2, 0xC9, 0xD7, 0xC5, 0xD4], "Привет"), ("KOI8-R", [0xF0], "П"),
            ("shift_jis", [0x93, 0xFA, 0x96, 0x7B, 0xB1, 0x7E, 0x87, 0x40], "日本ｱ~①"), ("sjis", [0x8C, 0xEA], "語"),
            ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42, 0x20, 0x61], "日本 a"),
            ("big5", [0xA4, 0xA4, 0xA4, 0xE5], "中文"), ("euc-kr", [0xC7, 0xD1, 0xB1, 0xB9], "한국"),
            ("gb18030", [0xD6, 0xD0, 0xCE, 0xC4, 0x95, 0x32, 0x82, 0x36], "中文𠀀"), ("gbk", [0xD6, 0xD0, 0xCE, 0xC4], "中文"),
            ("gb2312", [0xD6, 0xD0, 0xCE, 0xC4], "中文"),
            // Half-width katakana, and a character that only the Hong Kong variant has.
            ("iso-2022-jp", [0x1B, 0x28, 0x49, 0x31, 0x1B, 0x28, 0x42], "ｱ"), ("big5", [0x87, 0x40], "䏰"),
            // Foundation on Linux (Swift 6.3) reads these incorrectly or not at all.
            ("macintosh", [0x80, 0x8E, 0xA0], "Äé†"), ("euc-jp", [0xC6, 0xFC, 0xCB, 0xDC, 0xB8, 0xEC], "日本語"),
            ("euc-kr", [0x8C, 0x63], "똠"),
        ] as [(String, [UInt8], String)])
    func `text in each supported character set is decoded`(charset: String, bytes: [UInt8], expected: String) throws {
        let body = response(bytes, type: "text/plain; charset=\(charset)")
        try expectEqual(serializer.serialize(body), expected)
        try expectEqual(serializer.serialize(response([], type: "text/plain; charset=\(charset)")), "")
    }

    @Test(
        arguments: [
            ("windows-1252", [0x81]), ("windows-1253", [0xAA]), ("windows-1257", [0x83]), ("iso-8859-7", [0xAE]),
            ("shift_jis", [0x82]),
            ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46]), ("iso-2022-jp", [0x1B, 0x24, 0x28, 0x44, 0x30, 0x21]), ("big5", [0xA4]),
            ("euc-kr", [0xFF]), ("euc-jp", [0xC6]),
            ("gb18030", [0x95, 0x32]), ("utf-32le", [0xFC, 0, 0]),
        ] as [(String, [UInt8])])
    func `bytes outside a character set, and incomplete characters, are an error`(charset: String, bytes: [UInt8]) {
        let error = HTTPSessionError.thrown { try serializer.serialize(response(bytes, type: "text/plain; charset=\(charset)")) }
        expectEqual(error?.code, .cannotDecodeContent)
        expectEqual(error?.reason, "the body is not \"\(charset)\" text")
    }

    @Test func `a megabyte of multibyte text is decoded completely`() throws {
        let sample: [UInt8] = [0x93, 0xFA, 0x61, 0x96, 0x7B]
        let count = 200_000
        let bytes = (0..<count).flatMap { _ in sample }
        let text = try serializer.serialize(response(bytes, type: "text/plain; charset=shift_jis"))
        expectEqual(text, String(repeating: "日a本", count: count))
    }

    @Test(
        arguments: [
            .windowsCP1251, .isoLatin2, .japaneseEUC, .macOSRoman, String.Encoding(rawValue: 0x8000_0203),
            String.Encoding(rawValue: 0x8000_0419), String.Encoding(rawValue: 0x8000_0A08),
        ] as [String.Encoding])
    func `an encoding chosen by the user is decoded by the C library too`(encoding: String.Encoding) throws {
        try expectEqual(StringResponseSerializer(encoding: encoding).serialize(response([0x61, 0x62])), "ab")
    }

    @Test func `random bytes in the C library's character sets are text or an error`() {
        let charsets = ["koi8-r", "shift_jis", "iso-2022-jp", "euc-jp", "big5", "euc-kr", "gb18030", "macintosh"]
        for seed in (0..<5_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let charset = charsets.randomElement(using: &draws) ?? ""
            let length = Int.random(in: 0...100, using: &draws)
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &draws) }
            let error = HTTPSessionError.thrown { try serializer.serialize(response(bytes, type: "a/b; charset=\(charset)")) }
            #expect(error?.code == nil || error?.code == .cannotDecodeContent, "seed \(seed): \(charset)")
        }
    }
}
