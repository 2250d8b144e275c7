/// The data of a record as text: the form of a file of a zone (RFC 1035 section 5.1, and the documents of each type).
struct DNSRecordText {
    private let message: ArraySlice<UInt8>
    private let start, end: Int

    init(message: ArraySlice<UInt8>, start: Int, end: Int) { (self.message, self.start, self.end) = (message, start, end) }

    private var bytes: ArraySlice<UInt8> { message[start..<end] }

    /// Data whose form is not known (RFC 3597 section 5): `\# 4 C0000201`.
    var unknown: String { bytes.isEmpty ? "\\# 0" : "\\# \(bytes.count) \(Self.hexadecimal(bytes))" }

    /// Returns the text of a type whose form is known; `nil` for other types, and for data that does not have the form.
    func text(of type: DNSType) -> String? {
        var reader = Reader(message: message, position: start, end: end)
        let text: String? =
            switch type {
            case .a: reader.address(4)
            case .aaaa: reader.address(16)
            case .ns, .cname, .ptr, .dname: reader.name()
            case .soa: reader.joined([{ $0.name() }, { $0.name() }] + Array(repeating: { $0.number32() }, count: 5))
            case .mx: reader.joined([{ $0.number16() }, { $0.name() }])
            case .txt: reader.strings()
            case .srv: reader.joined([{ $0.number16() }, { $0.number16() }, { $0.number16() }, { $0.name() }])
            case .naptr:
                reader.joined([
                    { $0.number16() }, { $0.number16() }, { $0.string() }, { $0.string() }, { $0.string() }, { $0.name() },
                ])
            case .caa: reader.joined([{ $0.number8() }, { $0.tag() }, { $0.quotedRest() }])
            case .ds: reader.joined([{ $0.number16() }, { $0.number8() }, { $0.number8() }, { $0.hexadecimalRest() }])
            case .tlsa: reader.joined([{ $0.number8() }, { $0.number8() }, { $0.number8() }, { $0.hexadecimalRest() }])
            case .dnskey: reader.joined([{ $0.number16() }, { $0.number8() }, { $0.number8() }, { $0.base64Rest() }])
            case .rrsig:
                reader.joined([
                    { $0.type() }, { $0.number8() }, { $0.number8() }, { $0.number32() }, { $0.time() }, { $0.time() },
                    { $0.number16() }, { $0.name() }, { $0.base64Rest() },
                ])
            case .svcb, .https: reader.serviceBinding()
            default: nil
            }
        return reader.isAtEnd ? text : nil
    }

    /// The serial number of an SOA record; `nil` for other data.
    var serial: UInt32? {
        var reader = Reader(message: message, position: start, end: end)
        guard reader.name() != nil, reader.name() != nil, reader.remaining == 20 else { return nil }
        return reader.integer(4)
    }

    /// The end of the validity of an RRSIG record (RFC 4034 section 3.1.5) in seconds since 1970; `nil` for other data.
    var signatureEnd: UInt32? {
        var reader = Reader(message: message, position: start, end: end)
        guard reader.skip(8), reader.remaining >= 11 else { return nil }
        return reader.integer(4)
    }

    /// A byte of a name or of a text that is not visible: `\DDD`.
    static func escape(_ byte: UInt8) -> String {
        let digits = String(byte)
        return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    }

    static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
        bytes.reduce(into: "") { $0 += ($1 < 16 ? "0" : "") + String($1, radix: 16, uppercase: true) }
    }

    /// The fields of a record's data, from its first byte to its last. Each method returns `nil` if the data ends before.
    private struct Reader {
        let message: ArraySlice<UInt8>
        var position: Int
        let end: Int

        var isAtEnd: Bool { position == end }
        var remaining: Int { end - position }

        /// Reads fields, and separates their texts by spaces.
        mutating func joined(_ fields: [(inout Reader) -> String?]) -> String? {
            var texts: [String] = []
            for field in fields {
                guard let text = field(&self) else { return nil }
                texts.append(text)
            }
            return texts.joined(separator: " ")
        }

        mutating func skip(_ count: Int) -> Bool {
            guard remaining >= count else { return false }
            position += count
            return true
        }

        mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count >= 0, remaining >= count else { return nil }
            defer { position += count }
            return message[position..<(position + count)]
        }

        /// Reads an integer of at most four bytes.
        mutating func integer(_ count: Int) -> UInt32? { take(count).map { $0.reduce(0) { $0 << 8 | UInt32($1) } } }

        mutating func number8() -> String? { integer(1).map { "\($0)" } }
        mutating func number16() -> String? { integer(2).map { "\($0)" } }
        mutating func number32() -> String? { integer(4).map { "\($0)" } }
        mutating func type() -> String? { integer(2).map { "\(DNSType(number: UInt16(truncatingIfNeeded: $0)))" } }

        mutating func address(_ length: Int) -> String? {
            take(length).flatMap { IPAddress(bytes: $0) }.map { "\($0)" }
        }

        mutating func name() -> String? {
            var place = position
            guard let name = DNSName(message[..<end], at: &place), place <= end else { return nil }
            position = place
            return "\(name)"
        }

        /// Reads a time of a signature: `20261130134500`.
        mutating func time() -> String? {
            integer(4).map { CivilDate.timestamp(Int64($0)).filter(\.isNumber) }
        }

        /// Reads a character string (RFC 1035 section 3.3) in quotes.
        mutating func string() -> String? { integer(1).flatMap { take(Int($0)) }.map { Self.quoted($0) } }

        /// Reads at least one character string.
        mutating func strings() -> String? {
            var texts: [String] = []
            repeat {
                guard let text = string() else { return nil }
                texts.append(text)
            } while !isAtEnd
            return texts.joined(separator: " ")
        }

        /// Reads the tag of a CAA record (RFC 8659 section 4.1), which has letters and digits only.
        mutating func tag() -> String? {
            guard let bytes = integer(1).flatMap({ take(Int($0)) }), !bytes.isEmpty,
                bytes.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) })
            else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }

        mutating func quotedRest() -> String? { take(remaining).map { Self.quoted($0) } }
        mutating func hexadecimalRest() -> String? {
            take(remaining).flatMap { $0.isEmpty ? nil : DNSRecordText.hexadecimal($0) }
        }
        mutating func base64Rest() -> String? { take(remaining).flatMap { $0.isEmpty ? nil : Base64.text(Array($0)) } }

        /// Reads an SVCB or HTTPS record (RFC 9460 section 2.2).
        mutating func serviceBinding() -> String? {
            guard var text = joined([{ $0.number16() }, { $0.name() }]) else { return nil }
            while !isAtEnd {
                guard let key = integer(2), let length = integer(2), let value = take(Int(length)) else { return nil }
                text += " " + Self.parameter(key, value)
            }
            return text
        }

        private static func parameter(_ key: UInt32, _ value: ArraySlice<UInt8>) -> String {
            switch key {
            case 1: if let names = names(value) { return "alpn=\(quoted(names))" }
            case 2 where value.isEmpty: return "no-default-alpn"
            case 3 where value.count == 2: return "port=\(value.reduce(0) { $0 << 8 | Int($1) })"
            case 4: if let list = addresses(value, 4) { return "ipv4hint=\(list)" }
            case 6: if let list = addresses(value, 16) { return "ipv6hint=\(list)" }
            default: break
            }
            return "key\(key)" + (value.isEmpty ? "" : "=\(quoted(value))")
        }

        /// Returns the names of ALPN, with commas between them.
        private static func names(_ value: ArraySlice<UInt8>) -> [UInt8]? {
            var (names, rest): ([[UInt8]], ArraySlice<UInt8>) = ([], value)
            while let length = rest.first {
                guard length > 0, rest.count > Int(length) else { return nil }
                names.append(Array(rest.dropFirst().prefix(Int(length))))
                rest = rest.dropFirst(Int(length) + 1)
            }
            return names.isEmpty ? nil : Array(names.joined(separator: [UInt8(ascii: ",")]))
        }

        private static func addresses(_ value: ArraySlice<UInt8>, _ size: Int) -> String? {
            guard !value.isEmpty, value.count % size == 0 else { return nil }
            let addresses = stride(from: value.startIndex, to: value.endIndex, by: size).compactMap {
                IPAddress(bytes: value[$0..<($0 + size)])
            }
            return addresses.map { "\($0)" }.joined(separator: ",")
        }

        private static func quoted(_ bytes: some Collection<UInt8>) -> String {
            var text = "\""
            for byte in bytes {
                switch byte {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                    text += "\\"
                    text.unicodeScalars.append(Unicode.Scalar(byte))
                case 0x20...0x7e: text.unicodeScalars.append(Unicode.Scalar(byte))
                default: text += DNSRecordText.escape(byte)
                }
            }
            return text + "\""
        }
    }
}
