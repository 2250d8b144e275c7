/// An answer of a name server (RFC 1035 section 4.1), with the records of its three sections.
///
/// c-ares 1.18 returns neither sections nor the records of types that it does not know (decision 0036).
struct DNSMessage: Hashable, Sendable {
    /// The bits of the header's second word.
    enum Flags {
        static let answer: UInt16 = 0x8000
        static let operation: UInt16 = 0x7800
        static let authoritative: UInt16 = 0x0400
        static let truncated: UInt16 = 0x0200
        static let recursionDesired: UInt16 = 0x0100
        static let recursionAvailable: UInt16 = 0x0080
        static let authenticData: UInt16 = 0x0020
        static let checkingDisabled: UInt16 = 0x0010
        static let code: UInt16 = 0x000f

        /// The names of the flags of an answer, in the order of their bits.
        static let names: [(flag: UInt16, name: String)] = [
            (authoritative, "AA"), (truncated, "TC"), (recursionDesired, "RD"), (recursionAvailable, "RA"), (authenticData, "AD"),
            (checkingDisabled, "CD"),
        ]
    }

    /// A section with records.
    enum Section: String, CaseIterable, Codable, Sendable {
        case answer, authority, additional
    }

    struct Question: Hashable, Sendable {
        let name: DNSName
        let type: DNSType
        let recordClass: UInt16
    }

    /// The class of the Internet.
    static let internet: UInt16 = 1
    /// The most records that are read, of all sections: a message of 64 KiB could have five thousand with long names.
    static let recordLimit = 512
    private static let headerSize = 12

    let number: UInt16
    let flags: UInt16
    /// The response code, with the upper bits of an OPT record.
    private(set) var code: DNSResponseCode
    /// The question; `nil` if there is none.
    private(set) var question: Question?
    private(set) var sections: [Section: [DNSRecord]] = [:]
    /// The number of records that the header announces, without the OPT record.
    private(set) var counts: [Section: Int] = [:]
    /// Why the message cannot be read to its end; `nil` if it can.
    private(set) var damage: String?

    /// Reads a message. Returns `nil` if it has no complete header and question.
    init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)[...]
        guard bytes.count >= Self.headerSize, let number = Self.number(bytes, at: 0), let flags = Self.number(bytes, at: 2),
            let questions = Self.number(bytes, at: 4), questions <= 1
        else { return nil }
        (self.number, self.flags) = (number, flags)
        code = DNSResponseCode(number: flags & Flags.code)
        var position = Self.headerSize
        if questions == 1 {
            guard let name = DNSName(bytes, at: &position), let type = Self.number(bytes, at: position),
                let recordClass = Self.number(bytes, at: position + 2)
            else { return nil }
            question = Question(name: name, type: DNSType(number: type), recordClass: recordClass)
            position += 4
        }
        readSections(bytes, from: position)
    }

    private mutating func readSections(_ bytes: ArraySlice<UInt8>, from start: Int) {
        var (position, total) = (start, 0)
        for (place, section) in Section.allCases.enumerated() {
            let announced = Int(Self.number(bytes, at: 6 + 2 * place) ?? 0)
            counts[section] = announced
            for _ in 0..<announced {
                guard damage == nil, total < Self.recordLimit else { break }
                total += 1
                guard let record = DNSRecord(bytes, at: &position) else {
                    damage = "a record of its \(section.rawValue) section is cut or damaged"
                    break
                }
                guard record.type != .options else {
                    counts[section] = announced - 1
                    // The upper eight bits of the code are the first ones of the TTL.
                    code = DNSResponseCode(number: UInt16(truncatingIfNeeded: record.ttl >> 24) << 4 | flags & Flags.code)
                    continue
                }
                sections[section, default: []].append(record)
            }
        }
    }

    subscript(_ section: Section) -> [DNSRecord] { sections[section] ?? [] }

    var isTruncated: Bool { flags & Flags.truncated != 0 }

    /// Whether the message answers a question: it has the number, is an answer, and repeats the name in either case, the type and the class. A
    /// server that cannot read a question, or does not want to, may answer it with an error and without the question (RFC 1035 section 4.1.1).
    func answers(_ query: DNSQuery, number: UInt16) -> Bool {
        guard self.number == number, flags & Flags.answer != 0, flags & Flags.operation == 0 else { return false }
        guard let question else { return flags & Flags.code != 0 }
        return question.type == query.type && question.recordClass == Self.internet
            && question.name.lowercased == query.name.lowercased
    }

    /// Returns the number of 16 bits at a position; `nil` behind the end.
    static func number(_ bytes: ArraySlice<UInt8>, at position: Int) -> UInt16? {
        guard position >= bytes.startIndex, position < bytes.endIndex - 1 else { return nil }
        return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
    }
}

/// A record of an answer (RFC 1035 section 4.1.3).
struct DNSRecord: Hashable, Sendable {
    let type: DNSType
    let ttl: UInt32
    /// The record in one line, as in a file of a zone: `example.com. 3600 IN MX 10 mail.example.com.`
    let text: String
    /// The number of the zone's version, of an SOA record; otherwise `nil`.
    let serial: UInt32?
    /// The end of the validity of a signature in seconds since 1970, of an RRSIG record; otherwise `nil`.
    let signatureEnd: UInt32?

    /// Reads the record at a position of a message, and moves the position behind it. Returns `nil` if it is cut.
    ///
    /// Data that does not have the form of its type has the text of an unknown one.
    init?(_ message: ArraySlice<UInt8>, at position: inout Int) {
        guard let owner = DNSName(message, at: &position), let type = DNSMessage.number(message, at: position),
            let recordClass = DNSMessage.number(message, at: position + 2),
            let highTTL = DNSMessage.number(message, at: position + 4), let lowTTL = DNSMessage.number(message, at: position + 6),
            let length = DNSMessage.number(message, at: position + 8)
        else { return nil }
        let start = position + 10
        guard start <= message.endIndex, Int(length) <= message.endIndex - start else { return nil }
        let end = start + Int(length)
        position = end
        self.type = DNSType(number: type)
        ttl = UInt32(highTTL) << 16 | UInt32(lowTTL)
        let data = DNSRecordText(message: message, start: start, end: end)
        // The data of other classes has other forms.
        let isOfInternet = recordClass == DNSMessage.internet
        let known = isOfInternet ? data.text(of: self.type) : nil
        serial = isOfInternet && self.type == .soa ? data.serial : nil
        signatureEnd = isOfInternet && self.type == .rrsig ? data.signatureEnd : nil
        text = "\(owner) \(ttl) \(isOfInternet ? "IN" : "CLASS\(recordClass)") \(self.type) \(known ?? data.unknown)"
    }
}
