/// A domain name as it is in a message (RFC 1035 section 3.1): labels with their lengths, and the empty one of the root.
struct DNSName: Hashable, Sendable {
    /// The root.
    static let root = DNSName(bytes: [0])
    /// The most bytes of a name.
    static let longest = 255
    private static let longestLabel = 63

    let bytes: [UInt8]

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a name from its labels; `nil` if one is empty or too long, or if the name is.
    init?(labels: [some Collection<UInt8>]) {
        var bytes: [UInt8] = []
        for label in labels {
            guard (1...Self.longestLabel).contains(label.count) else { return nil }
            bytes.append(UInt8(clamping: label.count))
            bytes += label
        }
        bytes.append(0)
        guard bytes.count <= Self.longest else { return nil }
        self.bytes = bytes
    }

    /// Reads the name at a position of a message, with pointers to earlier names (RFC 1035 section 4.1.4), and moves the position behind it.
    ///
    /// Each pointer leads to a smaller position than the last one, so that a chain ends. Returns `nil` for a damaged name.
    init?(_ message: ArraySlice<UInt8>, at position: inout Int) {
        var (bytes, place): ([UInt8], Int) = ([], position)
        var end: Int?
        var earliest = position
        while message.indices.contains(place) {
            let length = Int(message[place])
            switch length {
            case 0:
                bytes.append(0)
                guard bytes.count <= Self.longest else { return nil }
                position = end ?? place + 1
                self.bytes = bytes
                return
            case 1...Self.longestLabel:
                guard place + length < message.endIndex, bytes.count + length + 2 <= Self.longest else { return nil }
                bytes += message[place...(place + length)]
                place += length + 1
            case 0xc0...:
                guard place + 1 < message.endIndex else { return nil }
                let target = message.startIndex + ((length & 0x3f) << 8 | Int(message[place + 1]))
                guard target < earliest else { return nil }
                end = end ?? place + 2
                (place, earliest) = (target, target)
            default: return nil
            }
        }
        return nil
    }

    /// The name with its letters of ASCII in lower case, as names are compared (RFC 4343 section 3).
    var lowercased: DNSName { DNSName(bytes: bytes.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }) }
}

extension DNSName: CustomStringConvertible {
    /// The name with a final dot, as in a file of a zone: `example.com.`. Bytes that are not visible have the form `\DDD` (RFC 4343 section 2.1).
    var description: String {
        guard bytes.count > 1 else { return "." }
        var text = ""
        var place = 0
        while place < bytes.count, bytes[place] > 0 {
            for byte in bytes.dropFirst(place + 1).prefix(Int(bytes[place])) {
                switch byte {
                case UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "("), UInt8(ascii: ")"),
                    UInt8(ascii: ";"), UInt8(ascii: "@"), UInt8(ascii: "$"):
                    text += "\\"
                    text.unicodeScalars.append(Unicode.Scalar(byte))
                case 0x21...0x7e: text.unicodeScalars.append(Unicode.Scalar(byte))
                default: text += DNSRecordText.escape(byte)
                }
            }
            text += "."
            place += Int(bytes[place]) + 1
        }
        return text
    }
}
