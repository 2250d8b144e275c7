package import FoundationEssentials

/// The decoding of character sets, by their names in `Content-Type` (IANA's registry).
package enum Charset {
    /// The text of `data`, without a byte order mark; `nil` for bytes that are invalid in the character set.
    ///
    /// UTF-8, UTF-16, UTF-32, ASCII and ISO 8859-1 are decoded here, other sets by the C library (iconv(3)).
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` if this system's C library lacks the character set.
    package static func decode(_ data: Data, as encoding: String.Encoding) throws(HTTPSessionError) -> String? {
        guard let text = try text(of: data, as: encoding) else { return nil }
        return text.first == "\u{FEFF}" ? String(text.dropFirst()) : text
    }

    /// The encoding of a name in upper or lower case; `nil` for names that are not in the table.
    package static func encoding(named name: String) -> String.Encoding? { table[name.lowercased()] }

    private static func text(of data: Data, as encoding: String.Encoding) throws(HTTPSessionError) -> String? {
        guard let names = iconvNames[encoding] ?? codePage(encoding) else {
            // Foundation ignores an incomplete last code unit of UTF-16 and UTF-32.
            return data.count % unitSize(encoding) == 0 ? String(data: data, encoding: encoding) : nil
        }
        for name in names {
            do throws(TextConversion.Failure) {
                let text = String(validating: try TextConversion.utf8(data, from: name), as: UTF8.self)
                // iconv(3) leaves an unknown escape sequence of ISO 2022 in the text.
                return encoding == .iso2022JP && text?.contains("\u{1B}") == true ? nil : text
            } catch {
                guard error == .unknownCharset else { continue }
                throw HTTPSessionError(.cannotDecodeContent, "this system's C library does not know the character set \(name)")
            }
        }
        return nil
    }

    /// The C library's names for the other parts of ISO 8859, and for code pages that have a number in CoreFoundation.
    private static func codePage(_ encoding: String.Encoding) -> [String]? {
        let number = encoding.rawValue & 0x7FFF_FFFF
        guard encoding.rawValue & 0x8000_0000 != 0 else { return nil }
        switch number {
        case 0x0201...0x0210: return ["ISO-8859-\(number & 0xFF)"]
        case 0x0508: return ["CP1258"]
        case 0x0400: return ["CP437"]
        case 0x0410: return ["CP850"]
        case 0x0411: return ["CP852"]
        case 0x0419: return ["CP866"]
        case 0x041D: return ["CP874"]
        case 0x0A08: return ["KOI8-U"]
        default: return nil
        }
    }

    private static func unitSize(_ encoding: String.Encoding) -> Int {
        switch encoding {
        case .utf16, .utf16LittleEndian, .utf16BigEndian: 2
        case .utf32, .utf32LittleEndian, .utf32BigEndian: 4
        default: 1
        }
    }

    /// The encoding for a number of CoreFoundation, as CFStringConvertEncodingToNSStringEncoding maps it. `String.Encoding` has no name for it.
    private static func coreFoundation(_ number: UInt) -> String.Encoding { String.Encoding(rawValue: 0x8000_0000 | number) }

    private static let iso8859x5 = coreFoundation(0x0205)
    private static let iso8859x7 = coreFoundation(0x0207)
    private static let iso8859x9 = coreFoundation(0x0209)
    private static let iso8859x15 = coreFoundation(0x020F)
    private static let windows1255 = coreFoundation(0x0505)
    private static let windows1256 = coreFoundation(0x0506)
    private static let windows1257 = coreFoundation(0x0507)
    private static let koi8R = coreFoundation(0x0A02)
    private static let big5 = coreFoundation(0x0A03)
    private static let eucKR = coreFoundation(0x0940)
    private static let gb18030 = coreFoundation(0x0632)

    private static let table: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii,
        "utf-16": .utf16, "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian,
        "utf-32": .utf32, "utf-32le": .utf32LittleEndian, "utf-32be": .utf32BigEndian,
        "iso-8859-1": .isoLatin1, "latin1": .isoLatin1, "iso_8859-1": .isoLatin1, "l1": .isoLatin1,
        "iso-8859-2": .isoLatin2, "latin2": .isoLatin2, "iso-8859-5": iso8859x5, "iso-8859-7": iso8859x7,
        "iso-8859-9": iso8859x9, "iso-8859-15": iso8859x15,
        "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "windows-1252": .windowsCP1252,
        "windows-1253": .windowsCP1253, "windows-1254": .windowsCP1254, "windows-1255": windows1255,
        "windows-1256": windows1256, "windows-1257": windows1257,
        "koi8-r": koi8R, "macintosh": .macOSRoman, "shift_jis": .shiftJIS, "sjis": .shiftJIS,
        "iso-2022-jp": .iso2022JP, "euc-jp": .japaneseEUC, "big5": big5, "euc-kr": eucKR,
        // GB 18030 contains GBK and GB 2312.
        "gb18030": gb18030, "gbk": gb18030, "gb2312": gb18030,
    ]

    /// The C library's names. The Windows variants contain the characters of the standard, and servers use them (Encoding Standard).
    private static let iconvNames: [String.Encoding: [String]] = [
        .isoLatin2: ["ISO-8859-2"], iso8859x5: ["ISO-8859-5"], iso8859x7: ["ISO-8859-7"], iso8859x9: ["ISO-8859-9"],
        iso8859x15: ["ISO-8859-15"], .windowsCP1250: ["CP1250"], .windowsCP1251: ["CP1251"], .windowsCP1252: ["CP1252"],
        .windowsCP1253: ["CP1253"], .windowsCP1254: ["CP1254"], windows1255: ["CP1255"], windows1256: ["CP1256"],
        windows1257: ["CP1257"],
        koi8R: ["KOI8-R"], .macOSRoman: ["MACINTOSH"], .shiftJIS: ["CP932"], .iso2022JP: ["ISO-2022-JP-3"],
        .japaneseEUC: ["EUC-JP"],
        big5: ["CP950", "BIG5-HKSCS"], eucKR: ["CP949"], gb18030: ["GB18030"],
    ]
}
