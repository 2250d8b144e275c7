internal import Wire

/// The conversion of a server's bytes into text for sentences and evidence.
enum ExternalText {
    /// The most bytes of an excerpt.
    static let excerptLength = 64
    /// The most characters of a field's value or of a URL.
    static let valueLength = 256

    /// Returns UTF-8 bytes as text of at most `length` characters. Control characters and invalid bytes become U+FFFD.
    static func shortened(_ bytes: some Collection<UInt8>, to length: Int = valueLength) -> String {
        // A character of a cut sequence at the end becomes U+FFFD, and is removed with the excess.
        let text = String(decoding: bytes.prefix(length * 4 + 4), as: UTF8.self)
        var shown = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            guard count < length else { return String(shown) + "…" }
            shown.append(UnsafeCharacters.contain(scalar) ? "\u{FFFD}" : scalar)
            count += 1
        }
        return String(shown)
    }

    /// Returns text of at most `length` characters, without control characters.
    static func shortened(_ text: String, to length: Int = valueLength) -> String { shortened(text.utf8, to: length) }

    /// Returns the first bytes of what is no protocol, at most ``excerptLength``, as ASCII text; other bytes have the escapes of C.
    static func excerpt(_ bytes: some Collection<UInt8>) -> String {
        escaped(bytes.prefix(excerptLength)) + (bytes.count > excerptLength ? "…" : "")
    }

    /// Returns bytes as ASCII text; other bytes have the escapes of C.
    static func escaped(_ bytes: some Sequence<UInt8>) -> String {
        bytes.reduce(into: "") { text, byte in
            switch byte {
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\r"): text += "\\r"
            case UInt8(ascii: "\t"): text += "\\t"
            case UInt8(ascii: "\\"): text += "\\\\"
            case 0x20..<0x7F: text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
    }
}
