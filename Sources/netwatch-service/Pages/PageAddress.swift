/// An address to which a page may lead: a path of this service with its query, or a URL of http or https.
struct PageAddress: Hashable, Sendable {
    /// The address: ASCII without spaces and quotation marks.
    let text: String

    /// Creates the address of a fixed path.
    init(_ path: StaticString) { text = path.description }

    private init(checked text: String) { self.text = text }

    /// Creates an address of this service.
    ///
    /// - Parameters:
    ///   - path: the fixed beginning of the path, such as `/target/`.
    ///   - segment: the last segment of the path, which is percent-encoded.
    ///   - query: the parameters. Those whose value is `nil` are omitted.
    init(_ path: StaticString, segment: String = "", query: [(name: StaticString, value: String?)] = []) {
        var text = path.description + Self.encoded(segment)
        var separator = "?"
        for (name, value) in query {
            guard let value else { continue }
            text += "\(separator)\(name)=\(Self.encoded(value))"
            separator = "&"
        }
        self.text = text
    }

    /// Creates the address of a page elsewhere; `nil` if the text is no URL of http or https in ASCII.
    init?(external url: String) {
        let lower = url.lowercased()
        guard lower.hasPrefix("https://") || lower.hasPrefix("http://"),
            url.utf8.allSatisfy({ 0x21..<0x7f ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
        else { return nil }
        text = url
    }

    /// Returns the address with a parameter that is not in its query yet.
    func adding(_ name: StaticString, _ value: String) -> PageAddress {
        PageAddress(checked: text + (text.contains("?") ? "&" : "?") + "\(name)=\(Self.encoded(value))")
    }

    /// Returns text with percent-encoded bytes in place of all but the unreserved characters (RFC 3986 section 2.3).
    static func encoded(_ text: String) -> String {
        var text = text
        return text.withUTF8 { utf8 in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(utf8.count)
            for byte in utf8 {
                if isUnreserved(byte) {
                    bytes.append(byte)
                } else {
                    bytes += [UInt8(ascii: "%"), hexadecimal(byte >> 4), hexadecimal(byte & 15)]
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static func hexadecimal(_ number: UInt8) -> UInt8 {
        number < 10 ? UInt8(ascii: "0") + number : UInt8(ascii: "A") + number - 10
    }
}
