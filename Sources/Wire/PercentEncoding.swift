/// The percent-encoding of parts of URLs (RFC 3986 section 2.1).
package enum PercentEncoding {
    /// Encodes all bytes of a text but the unreserved characters (`A-Z a-z 0-9 - . _ ~`, RFC 3986 section 2.3).
    package static func encode(_ text: String) -> String { encode(text.utf8) { !isUnreserved($0) } }

    /// Encodes the bytes for which `isEncoded` is true, with capital letters as RFC 3986 section 2.1 asks for.
    @inlinable package static func encode(_ bytes: some Collection<UInt8>, where isEncoded: (UInt8) -> Bool) -> String {
        guard bytes.contains(where: isEncoded) else { return String(decoding: bytes, as: UTF8.self) }
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count + 32)
        for byte in bytes {
            if isEncoded(byte) {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(digit(byte >> 4))
                encoded.append(digit(byte & 15))
            } else {
                encoded.append(byte)
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// Decodes percent-encoded bytes; `nil` if a percent sign is not followed by two digits, or if the bytes are not UTF-8.
    package static func decode(_ text: some StringProtocol) -> String? {
        var (bytes, remaining) = ([UInt8](), Array(text.utf8)[...])
        bytes.reserveCapacity(remaining.count)
        while let byte = remaining.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = remaining.popFirst().flatMap(HTTPGrammar.hexadecimalValue),
                let low = remaining.popFirst().flatMap(HTTPGrammar.hexadecimalValue)
            else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return String(validating: bytes, as: UTF8.self)
    }

    @inlinable package static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    @usableFromInline static func digit(_ number: UInt8) -> UInt8 {
        number < 10 ? UInt8(ascii: "0") + number : UInt8(ascii: "A") + number - 10
    }
}
