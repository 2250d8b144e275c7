internal import InternationalNames

/// What a `dns://` target asks its server: a name and a type, as the path `/NAME?type=TYPE` has them.
struct DNSQuery: Hashable, Sendable {
    let name: DNSName
    let type: DNSType

    /// The question for the addresses of the root, which no server has.
    static let root = DNSQuery(name: .root, type: .a)

    init(name: DNSName, type: DNSType) { (self.name, self.type) = (name, type) }

    /// Parses what follows the server. An international name is asked for in its ASCII form (RFC 5891).
    init(_ text: Substring) throws(Endpoint.ParseError) {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let name = (parts.first ?? "").dropFirst()
        guard !name.isEmpty else { throw Self.error("the name to ask for is missing; write dns://SERVER/NAME?type=TYPE") }
        guard !text.contains("#") else { throw Self.error("'#' does not belong to a name") }
        self.name = try Self.name(name)
        type = parts.count > 1 ? try Self.type(parts[1]) : .a
    }

    private static func error(_ reason: String) -> Endpoint.ParseError { Endpoint.ParseError(description: "path: \(reason)") }

    private static func type(_ query: Substring) throws(Endpoint.ParseError) -> DNSType {
        var found: DNSType?
        for part in query.split(separator: "&", omittingEmptySubsequences: false) {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0] == "type" else {
                throw error("'\(part)' is not known behind '?'; write type=TYPE, as in type=MX")
            }
            guard let type = DNSType(pair[1]) else {
                throw error("type: '\(pair[1])' is neither the name of a type, such as MX, nor a number up to 65535")
            }
            guard type.isAskable else { throw error("type: \(type) is not a type that a probe can ask for") }
            guard found == nil else { throw error("type: is given twice") }
            found = type
        }
        return found ?? .a
    }

    private static func name(_ text: Substring) throws(Endpoint.ParseError) -> DNSName {
        guard text != "." else { return .root }
        var labels: [[UInt8]] = []
        for label in (text.hasSuffix(".") ? text.dropLast() : text).split(separator: ".", omittingEmptySubsequences: false) {
            guard !label.isEmpty else { throw error("'\(text)' has an empty label") }
            var ascii = String(label)
            // In a label of ASCII, IDNA changes nothing but case, and refuses some that DNS has, such as those of RFC 2317.
            if !label.utf8.allSatisfy({ $0 < 0x80 }) {
                guard let converted = InternationalHost.ascii(ascii) else {
                    throw error("IDNA does not allow the label '\(label)'")
                }
                ascii = converted
            }
            guard ascii.utf8.allSatisfy(isAllowed) else { throw error("'\(text)' is not a DNS name") }
            guard ascii.utf8.count <= 63 else { throw error("a label is longer than 63 characters") }
            labels.append(Array(ascii.utf8))
        }
        guard let name = DNSName(labels: labels) else { throw error("is longer than the 253 characters of a DNS name") }
        return name
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "/"): true
        default: false
        }
    }

    /// The path in its usual form: the name in lower case without its final dot, and the type unless it is A.
    var path: String {
        let text = name.lowercased.description
        return "/" + (name == .root ? text : String(text.dropLast())) + (type == .a ? "" : "?type=\(type)")
    }

    /// The question in a sentence: `MX of example.com`.
    var text: String { "\(type) of \(name == .root ? "." : String(name.description.dropLast()))" }
}

extension DNSQuery {
    /// The most bytes of an answer by UDP: more may need fragments, which many networks drop (DNS Flag Day 2020).
    static let datagramSize: UInt16 = 1_232

    /// Returns the message of the question (RFC 1035 section 4.1) with an OPT record (RFC 6891), which also asks for signatures (RFC 4035 section
    /// 3.2.1): an answer that has none does not grow by it.
    func message(number: UInt16, isRecursive: Bool) -> [UInt8] {
        func bytes(_ number: UInt16) -> [UInt8] { [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)] }
        // RD, and AD, by which the resolver says whether it has verified the answer (RFC 6840 section 5.7).
        let flags: UInt16 = (isRecursive ? DNSMessage.Flags.recursionDesired : 0) | DNSMessage.Flags.authenticData
        var message = bytes(number) + bytes(flags) + bytes(1) + bytes(0) + bytes(0) + bytes(1)
        message += name.bytes + bytes(type.number) + bytes(DNSMessage.internet)
        // The root, OPT, the size, no extended code, version 0, the flag DO, no options.
        message += [0] + bytes(DNSType.options.number) + bytes(Self.datagramSize) + [0, 0, 0x80, 0, 0, 0]
        return message
    }
}
