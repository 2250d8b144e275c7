internal import ByteComparison

/// The search for a loop among the aliases (CNAME) of a DNS message. A name in a loop has no address, which no record says.
enum AliasLoop {
    /// The maximum number of records of a message that are read.
    private static let recordLimit = 256
    /// The maximum number of names that are returned.
    private static let nameLimit = 16
    private static let headerSize = 12
    private static let aliasType = 5

    /// Returns the names of the loop to which the question's name leads, in order. The last one is an alias of the first one.
    /// Returns `nil` if there is none, or if the message is damaged.
    static func find(in message: some RandomAccessCollection<UInt8>) -> [String]? {
        // Most answers without addresses have no records at all.
        guard message.dropFirst(6).prefix(2).contains(where: { $0 != 0 }) else { return nil }
        let bytes = ContiguousArray(message)
        guard bytes.count > headerSize, number(bytes, at: 4) == 1, let (start, end) = name(bytes, at: headerSize) else {
            return nil
        }
        var position = end + 4
        var targets: [ExactString: String] = [:]
        for _ in 0..<min(number(bytes, at: 6), recordLimit) {
            guard let (owner, next) = name(bytes, at: position), next + 10 <= bytes.count else { return nil }
            let data = next + 10
            position = data + number(bytes, at: next + 8)
            guard position <= bytes.count else { return nil }
            guard number(bytes, at: next) == aliasType, let (target, _) = name(bytes, at: data) else { continue }
            if targets[ExactString(owner)] == nil { targets[ExactString(owner)] = target }
        }
        var names = [start]
        while let last = names.last, let target = targets[ExactString(last)] {
            if let first = names.firstIndex(where: { $0.isExactly(target) }) { return Array(names[first...].suffix(nameLimit)) }
            names.append(target)
        }
        return nil
    }

    private static func number(_ bytes: ContiguousArray<UInt8>, at index: Int) -> Int {
        index + 2 <= bytes.count ? Int(bytes[index]) << 8 | Int(bytes[index + 1]) : 0
    }

    /// Reads a name, which may end with a pointer to an earlier one (RFC 1035 section 4.1.4). Returns it in lowercase, with the
    /// position after it. Bytes that a name on a command line cannot have are written as in RFC 4343 section 2.1.
    private static func name(_ bytes: ContiguousArray<UInt8>, at index: Int) -> (String, end: Int)? {
        var (position, end): (Int, Int?) = (index, nil)
        var (text, length) = ("", 0)
        while position < bytes.count {
            let byte = Int(bytes[position])
            switch byte {
            case 0: return (text, end ?? position + 1)
            case 0xc0...:
                let target = number(bytes, at: position) & 0x3fff
                // Pointers lead to the front, so that they end.
                guard position + 2 <= bytes.count, target < position else { return nil }
                end = end ?? position + 2
                position = target
                length += 1
            case 1..<64:
                guard position + 1 + byte <= bytes.count else { return nil }
                if !text.isEmpty { text += "." }
                for byte in bytes[(position + 1)..<(position + 1 + byte)] { text += character(byte) }
                position += 1 + byte
                length += 1 + byte
            default: return nil
            }
            guard length <= 255 else { return nil }
        }
        return nil
    }

    private static func character(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): String(UnicodeScalar(byte | 0x20))
        case UInt8(ascii: "."), UInt8(ascii: "\\"): "\\" + String(UnicodeScalar(byte))
        case 0x21..<0x7f: String(UnicodeScalar(byte))
        default: "\\" + String(1_000 + Int(byte)).dropFirst()
        }
    }
}
