import Foundation

/// Character sets by their names in `Content-Type` (IANA's registry), as far as Foundation on Linux can read them.
enum Charset {
    /// `text` of `data`; `nil` for bytes that the character set does not have. A byte order mark is not part of it.
    static func decode(_ data: Data, as encoding: String.Encoding) -> String? {
        let unit = unitSize(encoding)
        // Foundation reads UTF-16 and UTF-32 that end within a unit as if the rest were not there.
        guard data.count % unit == 0, let text = String(data: data, encoding: encoding) else { return nil }
        return text.first == "\u{FEFF}" ? String(text.dropFirst()) : text
    }

    /// The encoding of that name, in any case of letters; `nil` for names that are not in the table.
    static func encoding(named name: String) -> String.Encoding? { table[name.lowercased()] }

    private static func unitSize(_ encoding: String.Encoding) -> Int {
        switch encoding {
        case .utf16, .utf16LittleEndian, .utf16BigEndian: 2
        case .utf32, .utf32LittleEndian, .utf32BigEndian: 4
        default: 1
        }
    }

    /// An encoding that String.Encoding has no name for: CoreFoundation's number, as CFStringConvertEncodingToNSStringEncoding maps it.
    private static func coreFoundation(_ number: UInt) -> String.Encoding { String.Encoding(rawValue: 0x8000_0000 | number) }

    private static let table: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii,
        "utf-16": .utf16, "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian,
        "utf-32": .utf32, "utf-32le": .utf32LittleEndian, "utf-32be": .utf32BigEndian,
        "iso-8859-1": .isoLatin1, "latin1": .isoLatin1, "iso_8859-1": .isoLatin1, "l1": .isoLatin1,
        "iso-8859-2": .isoLatin2, "latin2": .isoLatin2, "iso-8859-5": coreFoundation(0x0205),
        "iso-8859-7": coreFoundation(0x0207), "iso-8859-9": coreFoundation(0x0209), "iso-8859-15": coreFoundation(0x020F),
        "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "windows-1252": .windowsCP1252,
        "windows-1253": .windowsCP1253, "windows-1254": .windowsCP1254, "windows-1255": coreFoundation(0x0505),
        "windows-1256": coreFoundation(0x0506), "windows-1257": coreFoundation(0x0507),
        "koi8-r": coreFoundation(0x0A02), "macintosh": .macOSRoman, "shift_jis": .shiftJIS, "sjis": .shiftJIS,
        "iso-2022-jp": .iso2022JP, "big5": coreFoundation(0x0A03), "euc-kr": coreFoundation(0x0940),
        // GB 18030 has all of GBK and GB 2312.
        "gb18030": coreFoundation(0x0632), "gbk": coreFoundation(0x0632), "gb2312": coreFoundation(0x0632),
    ]
}
