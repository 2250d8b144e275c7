/// The type of a record (RFC 1035 section 3.2.2): a number, which has a name if it is a usual one.
struct DNSType: Hashable, Sendable {
    let number: UInt16

    static let a = DNSType(number: 1)
    static let ns = DNSType(number: 2)
    static let cname = DNSType(number: 5)
    static let soa = DNSType(number: 6)
    static let ptr = DNSType(number: 12)
    static let mx = DNSType(number: 15)
    static let txt = DNSType(number: 16)
    static let aaaa = DNSType(number: 28)
    static let srv = DNSType(number: 33)
    static let naptr = DNSType(number: 35)
    static let dname = DNSType(number: 39)
    static let options = DNSType(number: 41)
    static let ds = DNSType(number: 43)
    static let rrsig = DNSType(number: 46)
    static let dnskey = DNSType(number: 48)
    static let tlsa = DNSType(number: 52)
    static let svcb = DNSType(number: 64)
    static let https = DNSType(number: 65)
    static let caa = DNSType(number: 257)

    private static let names: [(name: String, type: DNSType)] = [
        ("A", .a), ("NS", .ns), ("CNAME", .cname), ("SOA", .soa), ("PTR", .ptr), ("MX", .mx), ("TXT", .txt), ("AAAA", .aaaa),
        ("SRV", .srv), ("NAPTR", .naptr), ("DNAME", .dname), ("DS", .ds), ("RRSIG", .rrsig), ("DNSKEY", .dnskey), ("TLSA", .tlsa),
        ("SVCB", .svcb), ("HTTPS", .https), ("CAA", .caa),
    ]

    init(number: UInt16) { self.number = number }

    /// Creates a type from its name, such as `AAAA`, or from its number as `65` or `TYPE65` (RFC 3597 section 5); `nil` for another text.
    init?(_ text: some StringProtocol) {
        let name = text.uppercased()
        if let known = Self.names.first(where: { $0.name == name }) {
            self = known.type
            return
        }
        let digits = name.hasPrefix("TYPE") ? name.dropFirst(4) : name[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(digits) else {
            return nil
        }
        self.number = number
    }

    /// Whether one question and one answer can be about the type: not 0, OPT, and the transfers and keys of RFC 8945, 2930, 1995 and 5936.
    var isAskable: Bool { number != 0 && self != .options && !(249...252).contains(number) }
}

extension DNSType: CustomStringConvertible {
    /// The name, or `TYPE` and the number (RFC 3597 section 5).
    var description: String { Self.names.first { $0.type == self }?.name ?? "TYPE\(number)" }
}

/// The response code of an answer (RFC 1035 section 4.1.1, RFC 6891 section 6.1.3).
struct DNSResponseCode: Hashable, Sendable {
    let number: UInt16

    static let success = DNSResponseCode(number: 0)

    private static let names: [String] = [
        "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE",
    ]
    private static let extendedNames: [UInt16: String] = [16: "BADVERS", 23: "BADCOOKIE"]
    /// The greatest code: 12 bits.
    private static let greatest: UInt16 = 4_095

    init(number: UInt16) { self.number = number }

    /// Creates a code from its name or its number; `nil` for another text.
    init?(_ text: String) {
        let name = text.uppercased()
        if let place = Self.names.firstIndex(of: name) {
            number = UInt16(clamping: place)
        } else if let known = Self.extendedNames.first(where: { $0.value == name }) {
            number = known.key
        } else if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(text),
            number <= Self.greatest
        {
            self.number = number
        } else {
            return nil
        }
    }
}

extension DNSResponseCode: CustomStringConvertible {
    /// The name, or `RCODE` and the number.
    var description: String {
        Self.names.indices.contains(Int(number)) ? Self.names[Int(number)] : Self.extendedNames[number] ?? "RCODE\(number)"
    }
}
