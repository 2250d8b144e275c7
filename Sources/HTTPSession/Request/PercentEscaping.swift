/// Percent escaping for query strings and forms (RFC 3986 section 2.1).
package enum PercentEscaping {
    /// Escapes all bytes of the text's UTF-8 except the unreserved characters (`A-Z a-z 0-9 - . _ ~`, RFC 3986 section 2.3), `/` and `?` (section 3.4).
    package static func escape(_ text: String) -> String { escape(bytes: text.utf8) }

    /// Escapes bytes that are no text.
    package static func escape(bytes: some Collection<UInt8>) -> String {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(bytes.count)
        for byte in bytes {
            if isKept(byte) {
                escaped.append(byte)
            } else {
                escaped.append(UInt8(ascii: "%"))
                escaped.append(hexadecimalDigit(byte >> 4))
                escaped.append(hexadecimalDigit(byte & 15))
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Decodes percent-encoded bytes; `nil` if an escape is invalid, or if the bytes are no UTF-8.
    package static func unescape(_ text: String) -> String? {
        let parts = text.utf8.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
        var bytes = Array(parts[0])
        for part in parts.dropFirst() {
            let digits = part.prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(byte)
            bytes += part.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isKept(_ byte: UInt8) -> Bool {
        switch Unicode.Scalar(byte) {
        case "A"..."Z", "a"..."z", "0"..."9", "-", ".", "_", "~", "/", "?": true
        default: false
        }
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
