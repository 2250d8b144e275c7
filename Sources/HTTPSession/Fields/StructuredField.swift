internal import FoundationEssentials
internal import Wire

/// A parser of structured fields (RFC 9651 section 4.2). As that section requires, any syntax error invalidates the complete
/// field.
struct StructuredField {
    /// The value of an item.
    enum Item: Hashable, Sendable {
        case integer(Int64)
        case boolean(Bool)
        case bytes(Data)
        /// A decimal, string, token, date or inner list. Its syntax is checked and its value ignored.
        case other
    }

    private struct Broken: Error {}

    private var remaining: Substring.UTF8View

    private init(_ text: String) { remaining = text[...].utf8 }

    /// Parses an item and ignores its parameters; `nil` if the field is invalid.
    static func item(_ text: String) -> Item? {
        read(text) { (field) throws(Broken) in try field.item() }
    }

    /// Parses a dictionary; a repeated key has its last value. `nil` if the field is invalid.
    static func dictionary(_ text: String) -> [String: Item]? {
        read(text) { (field) throws(Broken) in try field.dictionary() }
    }

    private static func read<Value>(_ text: String, _ body: (inout StructuredField) throws(Broken) -> Value) -> Value? {
        var field = StructuredField(text)
        field.skip(" ")
        guard let value = try? body(&field) else { return nil }
        field.skip(" ")
        return field.remaining.isEmpty ? value : nil
    }

    // MARK: Structures

    private mutating func dictionary() throws(Broken) -> [String: Item] {
        var members: [String: Item] = [:]
        while !remaining.isEmpty {
            let key = try key()
            if consume("=") {
                members[key] = remaining.first == StructuredField.byte("(") ? try innerList() : try item()
            } else {
                members[key] = .boolean(true)
                try parameters()
            }
            skip(" \t")
            if remaining.isEmpty { return members }
            guard consume(",") else { throw Broken() }
            skip(" \t")
            // A trailing comma is an error.
            if remaining.isEmpty { throw Broken() }
        }
        return members
    }

    private mutating func innerList() throws(Broken) -> Item {
        guard consume("(") else { throw Broken() }
        while true {
            skip(" ")
            if consume(")") { break }
            _ = try item()
            guard remaining.first == StructuredField.byte(" ") || remaining.first == StructuredField.byte(")") else {
                throw Broken()
            }
        }
        try parameters()
        return .other
    }

    private mutating func item() throws(Broken) -> Item {
        let item = try bareItem()
        try parameters()
        return item
    }

    private mutating func parameters() throws(Broken) {
        while consume(";") {
            skip(" ")
            _ = try key()
            if consume("=") { _ = try bareItem() }
        }
    }

    private mutating func key() throws(Broken) -> String {
        guard let first = remaining.first, StructuredField.isLower(first) || first == StructuredField.byte("*") else {
            throw Broken()
        }
        return consume { StructuredField.isLower($0) || HTTPGrammar.isDigit($0) || StructuredField.isOne(of: "_-.*", $0) }
    }

    // MARK: Items

    private mutating func bareItem() throws(Broken) -> Item {
        guard let first = remaining.first else { throw Broken() }
        switch Unicode.Scalar(first) {
        case "-", "0"..."9": return try number()
        case "\"": return try string()
        case "*", "A"..."Z", "a"..."z":
            _ = consume { HTTPGrammar.isTokenByte($0) || StructuredField.isOne(of: ":/", $0) }
            return .other
        case ":": return try byteSequence()
        case "?": return try boolean()
        case "@":
            remaining.removeFirst()
            // A date is an integer number of seconds.
            guard case .integer = try number() else { throw Broken() }
            return .other
        default: throw Broken()
        }
    }

    private mutating func number() throws(Broken) -> Item {
        let isNegative = consume("-")
        let integerPart = consume(HTTPGrammar.isDigit)
        guard !integerPart.isEmpty else { throw Broken() }
        guard consume(".") else {
            guard integerPart.utf8.count <= 15, let value = Int64(integerPart) else { throw Broken() }
            return .integer(isNegative ? -value : value)
        }
        let fraction = consume(HTTPGrammar.isDigit)
        guard integerPart.utf8.count <= 12, (1...3).contains(fraction.utf8.count) else { throw Broken() }
        return .other
    }

    private mutating func string() throws(Broken) -> Item {
        guard consume("\"") else { throw Broken() }
        while let byte = remaining.popFirst() {
            switch byte {
            case StructuredField.byte("\""): return .other
            case StructuredField.byte("\\"):
                guard let escaped = remaining.popFirst(), StructuredField.isOne(of: "\"\\", escaped) else { throw Broken() }
            case 0x20...0x7E: break
            default: throw Broken()
            }
        }
        throw Broken()
    }

    private mutating func byteSequence() throws(Broken) -> Item {
        guard consume(":") else { throw Broken() }
        var base64 = consume { StructuredField.isLetter($0) || HTTPGrammar.isDigit($0) || StructuredField.isOne(of: "+/", $0) }
        base64 += consume { $0 == StructuredField.byte("=") }
        guard consume(":") else { throw Broken() }
        // Padding may be missing (section 4.2.7).
        if !base64.hasSuffix("=") { base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4) }
        guard let bytes = Data(base64Encoded: base64) else { throw Broken() }
        return .bytes(bytes)
    }

    private mutating func boolean() throws(Broken) -> Item {
        guard consume("?") else { throw Broken() }
        if consume("1") { return .boolean(true) }
        guard consume("0") else { throw Broken() }
        return .boolean(false)
    }

    // MARK: Bytes

    private mutating func consume(_ character: Unicode.Scalar) -> Bool {
        guard remaining.first == StructuredField.byte(character) else { return false }
        remaining.removeFirst()
        return true
    }

    private mutating func consume(_ isConsumed: (UInt8) -> Bool) -> String {
        let taken = remaining.prefix(while: isConsumed)
        remaining = remaining[taken.endIndex...]
        return String(Substring(taken))
    }

    private mutating func skip(_ characters: StaticString) {
        remaining = remaining.drop { StructuredField.isOne(of: characters, $0) }
    }

    private static func byte(_ character: Unicode.Scalar) -> UInt8 { UInt8(ascii: character) }
    private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
    private static func isLetter(_ byte: UInt8) -> Bool { isLower(byte | 0x20) }

    private static func isOne(of characters: StaticString, _ byte: UInt8) -> Bool {
        characters.withUTF8Buffer { $0.contains(byte) }
    }
}

extension ResponseHead {
    /// The field's lines joined by commas (RFC 9110 section 5.3); `nil` if there is none.
    private func joined(_ name: StaticString) -> String? {
        let lines = values(of: name)
        return lines.isEmpty ? nil : lines.joined(separator: ", ")
    }

    /// The value of a structured field that is an integer of at least zero.
    func structuredInteger(of name: StaticString) -> Int64? {
        guard case .integer(let value)? = joined(name).flatMap(StructuredField.item), value >= 0 else { return nil }
        return value
    }

    /// The value of a structured field that is a Boolean.
    func structuredBoolean(of name: StaticString) -> Bool? {
        guard case .boolean(let value)? = joined(name).flatMap(StructuredField.item) else { return nil }
        return value
    }

    /// The value of a structured field that is a dictionary.
    func structuredDictionary(of name: StaticString) -> [String: StructuredField.Item]? {
        joined(name).flatMap(StructuredField.dictionary)
    }

    /// The value of a single field line that consists only of digits.
    func plainInteger(of name: StaticString) -> Int64? {
        let lines = values(of: name, limit: 2)
        guard lines.count == 1, !lines[0].isEmpty, lines[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(lines[0])
    }
}
