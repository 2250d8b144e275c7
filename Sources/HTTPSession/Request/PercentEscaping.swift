/// Percent escaping for query strings and forms (RFC 3986 section 2.1).
public enum PercentEscaping {
    /// Every byte escaped but the unreserved characters (`A-Z a-z 0-9 - . _ ~`, RFC 3986 section 2.3), `/` and `?`
    /// (section 3.4). A space becomes `%20`, other text its UTF-8.
    public static func escape(_ text: String) -> String { escape(bytes: text.utf8) }

    /// The same for bytes that are not text.
    public static func escape(bytes: some Collection<UInt8>) -> String {
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
