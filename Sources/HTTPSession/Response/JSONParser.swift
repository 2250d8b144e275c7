internal import FoundationEssentials

/// A value that a ``JSONParser`` builds.
protocol JSONTree {
    static var null: Self { get }
    static func bool(_ value: Bool) -> Self
    static func integer(_ value: Int64) -> Self
    /// An integer above `Int64.max`.
    static func unsigned(_ value: UInt64) -> Self
    static func number(_ value: Double) -> Self
    static func string(_ value: String) -> Self
    static func array(_ elements: [Self]) -> Self
    static func object(_ members: [String: Self]) -> Self
}

/// A parser of JSON texts (RFC 8259).
///
/// `JSONSerialization` is in Foundation only. `JSONDecoder` of FoundationEssentials needs 3.6 times as long for a value of any type.
struct JSONParser<Tree: JSONTree> {
    private let bytes: [UInt8]
    private var position = 0

    /// Parses a text in UTF-8, UTF-16 or UTF-32, with or without a byte order mark. If a name is repeated, the last member counts.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` with the position for a text that is not JSON. Lone surrogates, invalid bytes,
    ///   numbers beyond `Double` and more than 512 nested containers are errors too.
    static func parse(_ data: Data) throws(HTTPSessionError) -> Tree {
        var parser = JSONParser(bytes: try utf8(data))
        let tree = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.position == parser.bytes.count else { throw parser.unexpected }
        return tree
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// The text in UTF-8. RFC 4627 section 3: the first two characters of a JSON text are ASCII, so the zero bytes show the encoding.
    private static func utf8(_ data: Data) throws(HTTPSessionError) -> [UInt8] {
        let first = Array(data.prefix(4))
        let encoding: String.Encoding? =
            switch (first.first, first.dropFirst().first, first.dropFirst(2).first, first.dropFirst(3).first) {
            case (0xEF, 0xBB, 0xBF, _): nil
            case (0x00, 0x00, 0xFE, 0xFF), (0xFF, 0xFE, 0x00, 0x00): .utf32
            case (0xFE, 0xFF, _, _), (0xFF, 0xFE, _, _): .utf16
            case (0x00, 0x00, 0x00, .some): .utf32BigEndian
            case (.some, 0x00, 0x00, 0x00): .utf32LittleEndian
            case (0x00, .some, _, _): .utf16BigEndian
            case (.some, 0x00, _, _): .utf16LittleEndian
            default: nil
            }
        guard let encoding else { return Array(first.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data) }
        guard let text = try Charset.decode(data, as: encoding) else {
            throw HTTPSessionError(.cannotDecodeContent, "the JSON text has bytes that are not valid characters")
        }
        return Array(text.utf8)
    }

    private mutating func value(depth: Int) throws(HTTPSessionError) -> Tree {
        skipSpace()
        guard position < bytes.count else { throw unexpected }
        switch bytes[position] {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"): return try object(depth: depth + 1)
        case UInt8(ascii: "["): return try array(depth: depth + 1)
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return try number()
        }
    }

    private mutating func array(depth: Int) throws(HTTPSessionError) -> Tree {
        try open(depth)
        var elements: [Tree] = []
        guard !skip(UInt8(ascii: "]")) else { return .array(elements) }
        repeat { elements.append(try value(depth: depth)) } while skip(UInt8(ascii: ","))
        guard skip(UInt8(ascii: "]")) else { throw unexpected }
        return .array(elements)
    }

    private mutating func object(depth: Int) throws(HTTPSessionError) -> Tree {
        try open(depth)
        var members: [String: Tree] = [:]
        guard !skip(UInt8(ascii: "}")) else { return .object(members) }
        repeat {
            skipSpace()
            guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { throw unexpected }
            let name = try string()
            try checkName(name)
            guard skip(UInt8(ascii: ":")) else { throw unexpected }
            members[name] = try value(depth: depth)
        } while skip(UInt8(ascii: ","))
        guard skip(UInt8(ascii: "}")) else { throw unexpected }
        return .object(members)
    }

    /// Refuses names with long runs of combining characters.
    ///
    /// The time to hash a string grows with the square of such a run (Swift 6.3): 27 s for a name of 400 KB.
    private func checkName(_ name: String) throws(HTTPSessionError) {
        guard name.utf8.count > Self.maximumCombiningCharacters else { return }
        var run = 0
        for scalar in name.unicodeScalars {
            run = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : run + 1
            guard run <= Self.maximumCombiningCharacters else {
                throw HTTPSessionError(
                    .cannotDecodeContent,
                    "the JSON text has a name with more than \(Self.maximumCombiningCharacters) combining characters in a row")
            }
        }
    }

    /// The longest accepted run. Stream-safe texts have at most 30 (UAX #15).
    private static var maximumCombiningCharacters: Int { 256 }

    private mutating func open(_ depth: Int) throws(HTTPSessionError) {
        guard depth <= maximumJSONDepth else {
            throw HTTPSessionError(
                .cannotDecodeContent, "the JSON text has more than \(maximumJSONDepth) nested containers")
        }
        position += 1
    }

    private mutating func literal(_ name: StaticString, _ value: Tree) throws(HTTPSessionError) -> Tree {
        let end = position + name.utf8CodeUnitCount
        guard end <= bytes.count, name.withUTF8Buffer({ bytes[position..<end].elementsEqual($0) }) else { throw unexpected }
        position = end
        return value
    }

    // MARK: Strings

    private mutating func string() throws(HTTPSessionError) -> String {
        position += 1
        let start = position
        passPlainCharacters()
        guard position < bytes.count else { throw unexpected }
        if bytes[position] == UInt8(ascii: "\"") {
            position += 1
            return try text(bytes[start..<(position - 1)])
        }
        var unescaped = Array(bytes[start..<position])
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return try text(unescaped[...])
            case UInt8(ascii: "\\"):
                position += 1
                try escape(into: &unescaped)
            default:
                throw unexpected
            }
            let next = position
            passPlainCharacters()
            unescaped += bytes[next..<position]
        }
        throw unexpected
    }

    /// Skips unescaped characters of a string, up to its end, an escape or a control character.
    private mutating func passPlainCharacters() {
        while position < bytes.count {
            let byte = bytes[position]
            guard byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { return }
            position += 1
        }
    }

    private func text(_ bytes: ArraySlice<UInt8>) throws(HTTPSessionError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw HTTPSessionError(
                .cannotDecodeContent, "the JSON text has bytes that are not valid characters, before byte \(position)")
        }
        return text
    }

    private mutating func escape(into text: inout [UInt8]) throws(HTTPSessionError) {
        guard position < bytes.count else { throw unexpected }
        let byte = bytes[position]
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            position += 1
            text += Array(String(try escapedScalar()).utf8)
            return
        default: throw unexpected
        }
        position += 1
    }

    /// Parses a character as one `\uXXXX` escape, or as two of a surrogate pair.
    private mutating func escapedScalar() throws(HTTPSessionError) -> Unicode.Scalar {
        let first = try codeUnit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(first), bytes[position...].starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]) else {
            throw loneSurrogate
        }
        position += 2
        let second = try codeUnit()
        guard UTF16.isTrailSurrogate(second) else { throw loneSurrogate }
        return UTF16.decode(UTF16.EncodedScalar([first, second]))
    }

    private mutating func codeUnit() throws(HTTPSessionError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard position < bytes.count, let digit = Self.hexadecimalDigit(bytes[position]) else { throw unexpected }
            unit = unit << 4 | digit
            position += 1
        }
        return unit
    }

    private static func hexadecimalDigit(_ byte: UInt8) -> UInt16? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    // MARK: Numbers

    private mutating func number() throws(HTTPSessionError) -> Tree {
        let start = position
        let isNegative = position < bytes.count && bytes[position] == UInt8(ascii: "-")
        if isNegative { position += 1 }
        let digits = position
        let magnitude = try passInteger()
        var isInteger = true
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            try passDigits()
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
                position += 1
            }
            try passDigits()
        }
        if isInteger, let magnitude, let integer = Self.integer(magnitude, isNegative: isNegative) { return integer }
        guard let number = Double(String(decoding: bytes[start..<position], as: UTF8.self)), number.isFinite else {
            throw HTTPSessionError(
                .cannotDecodeContent, "the JSON text has a number beyond the range of Double, at byte \(digits)")
        }
        return .number(number)
    }

    private static func integer(_ magnitude: UInt64, isNegative: Bool) -> Tree? {
        guard isNegative else { return Int64(exactly: magnitude).map(Tree.integer) ?? .unsigned(magnitude) }
        return magnitude <= Int64.min.magnitude ? .integer(Int64(truncatingIfNeeded: 0 &- magnitude)) : nil
    }

    /// Parses the digits before a fraction: one zero, or digits without a leading zero. - Returns: `nil` for a number beyond `UInt64`.
    private mutating func passInteger() throws(HTTPSessionError) -> UInt64? {
        guard position < bytes.count, Self.isDigit(bytes[position]) else { throw unexpected }
        var value: UInt64? = 0
        if bytes[position] == UInt8(ascii: "0") {
            position += 1
            return value
        }
        while position < bytes.count, Self.isDigit(bytes[position]) {
            let digit = UInt64(bytes[position] - UInt8(ascii: "0"))
            if let present = value {
                let (tenfold, isTooLarge) = present.multipliedReportingOverflow(by: 10)
                let (sum, isStillTooLarge) = tenfold.addingReportingOverflow(digit)
                value = isTooLarge || isStillTooLarge ? nil : sum
            }
            position += 1
        }
        return value
    }

    private mutating func passDigits() throws(HTTPSessionError) {
        guard position < bytes.count, Self.isDigit(bytes[position]) else { throw unexpected }
        while position < bytes.count, Self.isDigit(bytes[position]) { position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    // MARK: Positions

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    /// Skips white space, and then `byte` if it is next. - Returns: whether it was.
    private mutating func skip(_ byte: UInt8) -> Bool {
        skipSpace()
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private var unexpected: HTTPSessionError {
        let problem = position < bytes.count ? "has an unexpected character at byte \(position)" : "ends too early"
        return HTTPSessionError(.cannotDecodeContent, "the JSON text \(problem)")
    }

    private var loneSurrogate: HTTPSessionError {
        HTTPSessionError(.cannotDecodeContent, "the JSON text has half of a surrogate pair before byte \(position)")
    }
}

/// The largest number of nested containers, the same as of `JSONSerialization`.
private let maximumJSONDepth = 512
