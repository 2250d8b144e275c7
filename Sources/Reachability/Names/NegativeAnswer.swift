internal import ByteComparison

/// What an answer of DNS without addresses says beside its response code.
enum NegativeAnswer {
    private static let aliasType = 5
    private static let authorityType = 6
    /// The maximum number of names of a loop that are returned.
    private static let nameLimit = 16

    /// Returns whether an authority for the name is the source of the answer: it has the flag AA, or a record of type SOA, which a resolver
    /// must pass on (RFC 2308 section 2). An answer that has neither may be made up by a router or a portal on the way.
    static func isAuthoritative(_ message: some RandomAccessCollection<UInt8>) -> Bool {
        if message.dropFirst(2).first.map({ $0 & 0x04 != 0 }) ?? false { return true }
        guard let records = DNSRecords(message) else { return false }
        return records.contains { $0.type == authorityType }
    }

    /// Returns whether a server only refers to others, as glibc decides it (`send_dg` of res_send.c): without an error, without answers and
    /// additional records, neither an authority (AA) nor a resolver (RA). The next server is asked then: this one is not for clients, or not for
    /// this name.
    static func isReferral(_ message: some RandomAccessCollection<UInt8>) -> Bool {
        guard message.count >= 12 else { return false }
        func byte(_ offset: Int) -> UInt8 { message[message.index(message.startIndex, offsetBy: offset)] }
        // No AA and TC, no RA and code, and no records in the two sections.
        return byte(2) & 0x06 == 0 && byte(3) & 0x8f == 0 && byte(6) | byte(7) | byte(10) | byte(11) == 0
    }

    /// Returns the names of the loop of aliases (CNAME) to which the question's name leads, in order: such a name has no address, which no
    /// record says. The last name is an alias of the first one. Returns `nil` if there is none, or if the message is damaged.
    static func aliasLoop(in message: some RandomAccessCollection<UInt8>) -> [String]? {
        // Most answers without addresses have no records at all.
        guard message.dropFirst(6).prefix(2).contains(where: { $0 != 0 }), let records = DNSRecords(message),
            let start = records.question
        else { return nil }
        var targets: [ExactString: String] = [:]
        for record in records where record.type == aliasType {
            guard let owner = records.name(at: record.owner), let target = records.name(at: record.data) else { return nil }
            if targets[ExactString(owner)] == nil { targets[ExactString(owner)] = target }
        }
        var names = [start]
        while let last = names.last, let target = targets[ExactString(last)] {
            if let first = names.firstIndex(where: { $0.isExactly(target) }) { return Array(names[first...].suffix(nameLimit)) }
            names.append(target)
        }
        return nil
    }
}

/// The records of the answer and authority sections of a DNS message (RFC 1035 section 4.1). A damaged message ends at its damage.
private struct DNSRecords: Sequence, IteratorProtocol {
    struct Record {
        var type: Int
        /// The positions of the owner's name and of the data.
        var owner, data: Int
    }

    /// The maximum number of records that are read.
    private static let limit = 256
    private static let headerSize = 12

    private let bytes: ContiguousArray<UInt8>
    private var position: Int
    private var remaining: Int
    /// The name of the question.
    let question: String?

    /// Returns the records; `nil` for a message without exactly one question.
    init?(_ message: some RandomAccessCollection<UInt8>) {
        bytes = ContiguousArray(message)
        guard bytes.count > Self.headerSize, Self.number(bytes, at: 4) == 1,
            let (name, end) = Self.name(bytes, at: Self.headerSize)
        else { return nil }
        question = name
        position = end + 4
        remaining = Swift.min(Self.number(bytes, at: 6) + Self.number(bytes, at: 8), Self.limit)
    }

    func name(at position: Int) -> String? { Self.name(bytes, at: position)?.0 }

    mutating func next() -> Record? {
        guard remaining > 0, let (_, end) = Self.name(bytes, at: position), end + 10 <= bytes.count else { return nil }
        let record = Record(type: Self.number(bytes, at: end), owner: position, data: end + 10)
        position = record.data + Self.number(bytes, at: end + 8)
        guard position <= bytes.count else { return nil }
        remaining -= 1
        return record
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
