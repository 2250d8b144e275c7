internal import HTTPSession

/// A lexical check of an XML text before FoundationXML receives the text.
///
/// FoundationXML on Linux (Swift 6.3) passes libxml2's null pointers to `strlen`: a processing instruction without data, and most
/// declarations of an internal DTD subset, end the process. libxml2 runs in its recovering mode. In this mode it abandons some constructs
/// in the middle, and reads the remaining bytes as markup. Such constructs are a name above 50,000 bytes, a comment above 10,000,000, and
/// a character that XML lacks. The scanner therefore accepts no token whose end libxml2 could place elsewhere. Grammar: XML 1.0, fifth
/// edition.
struct XMLScanner {
    /// The maximum depth of nested elements; libxml2 has the same limit for documents.
    static let maximumDepth = 256
    /// The maximum size: libxml2 stops at more than 10,000,000 bytes (`XML_MAX_LOOKUP_LIMIT`).
    static let maximumBytes = 10_000_000
    /// The maximum number of attributes of an element: libxml2 compares each with all before it, and 100,000 attributes take 5 s.
    static let maximumAttributes = 1_000
    /// The maximum bytes of a name, or of an identifier in a document type; libxml2 abandons them at 50,000.
    static let maximumNameLength = 10_000

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0
    private var hasRoot = false
    private var hasDocumentType = false

    /// - Parameter bytes: The text in UTF-8, without its XML declaration.
    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether the scanned text has one root element, and an end tag for each start tag. Names are not compared.
    var isComplete: Bool { hasRoot && depth == 0 }

    /// Scans the complete text.
    ///
    /// - Throws: `cannotDecodeContent` with the reason for which FoundationXML must not receive the text.
    mutating func scan() throws(HTTPSessionError) {
        guard bytes.count <= Self.maximumBytes else {
            throw Self.refusal("the XML document has more than \(Self.maximumBytes) bytes")
        }
        try checkCharacters()
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "<") {
                try scanMarkup()
            } else {
                guard depth > 0 || Self.isSpace(bytes[position]) else { throw Self.malformed }
                position += 1
            }
        }
    }

    private mutating func scanMarkup() throws(HTTPSessionError) {
        if skip("<?") { return try scanInstruction() }
        if skip("<!--") { return try scanComment() }
        if skip("<![CDATA[") {
            guard depth > 0 else { throw Self.malformed }
            return try skipPast("]]>")
        }
        if skip("<!DOCTYPE") { return try scanDocumentType() }
        if skip("</") { return try scanEndTag() }
        position += 1
        try scanStartTag()
    }

    private mutating func scanInstruction() throws(HTTPSessionError) {
        let target = try scanName()
        // A second XML declaration is malformed; libxml2 accepts its name in any case of letters.
        guard target.count != 3 || !target.elementsEqual("xml".utf8, by: { $0 | 0x20 == $1 }) else { throw Self.malformed }
        let isSpaced = skipSpaces()
        guard !skip("?>") else {
            throw Self.refusal("the XML document has a processing instruction without data, which is not supported")
        }
        guard isSpaced else { throw Self.malformed }
        let start = position
        try skipPast("?>")
        // If libxml2 did not accept the target, it would read markup inside the data.
        let data = bytes[start..<position]
        guard !zip(data, data.dropFirst()).contains(where: { $0 == UInt8(ascii: "<") && ($1 == 0x3F || $1 == 0x21) }) else {
            throw Self.malformed
        }
    }

    private mutating func scanComment() throws(HTTPSessionError) {
        try skipPast("--")
        guard skip(">") else { throw Self.malformed }
    }

    /// A document type without an internal subset: `<!DOCTYPE name SYSTEM "…">`, `<!DOCTYPE name PUBLIC "…" "…">` or `<!DOCTYPE name>`.
    private mutating func scanDocumentType() throws(HTTPSessionError) {
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: ">")) else { throw Self.malformed }
        // At any position: libxml2 looks for the subset after an identifier that it refuses.
        if bytes[position..<end].contains(UInt8(ascii: "[")) {
            throw Self.refusal("the XML document has an internal DTD subset, which is not supported")
        }
        guard !bytes[position..<end].contains(UInt8(ascii: "<")), depth == 0, !hasRoot, !hasDocumentType, skipSpaces() else {
            throw Self.malformed
        }
        hasDocumentType = true
        _ = try scanName()
        if skipSpaces() {
            if skip("PUBLIC") {
                try scanIdentifier()
                try scanIdentifier()
            } else if skip("SYSTEM") {
                try scanIdentifier()
            }
            skipSpaces()
        }
        guard skip(">") else { throw Self.malformed }
    }

    private mutating func scanIdentifier() throws(HTTPSessionError) {
        guard skipSpaces() else { throw Self.malformed }
        let start = position
        try skipQuoted()
        guard position - start <= Self.maximumNameLength else { throw Self.malformed }
    }

    private mutating func scanStartTag() throws(HTTPSessionError) {
        guard depth > 0 || !hasRoot else { throw Self.malformed }
        hasRoot = true
        _ = try scanName()
        var attributes = 0
        while true {
            let isSpaced = skipSpaces()
            if skip("/>") { break }
            if skip(">") {
                depth += 1
                break
            }
            guard isSpaced else { throw Self.malformed }
            _ = try scanName()
            skipSpaces()
            guard skip("=") else { throw Self.malformed }
            skipSpaces()
            let start = position
            try skipQuoted()
            guard !bytes[start..<position].contains(UInt8(ascii: "<")) else { throw Self.malformed }
            attributes += 1
            guard attributes <= Self.maximumAttributes else {
                throw Self.refusal("an element of the XML document has more than \(Self.maximumAttributes) attributes")
            }
        }
        guard depth <= Self.maximumDepth else {
            throw Self.refusal("the XML document is more than \(Self.maximumDepth) elements deep")
        }
    }

    private mutating func scanEndTag() throws(HTTPSessionError) {
        _ = try scanName()
        skipSpaces()
        guard depth > 0, skip(">") else { throw Self.malformed }
        depth -= 1
    }

    private mutating func scanName() throws(HTTPSessionError) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, bytes[position] >= 0x80 || Self.isASCIINameByte(bytes[position]) { position += 1 }
        let name = bytes[start..<position]
        var scalars = String(decoding: name, as: UTF8.self).unicodeScalars.makeIterator()
        guard name.count <= Self.maximumNameLength, let first = scalars.next(), Self.isNameStart(first) else {
            throw Self.malformed
        }
        while let scalar = scalars.next() {
            guard Self.isNameStart(scalar) || Self.isNameContinuation(scalar) else { throw Self.malformed }
        }
        return name
    }

    /// Skips a quoted string of one of the two kinds.
    private mutating func skipQuoted() throws(HTTPSessionError) {
        if skip("\"") { return try skipPast("\"") }
        guard skip("'") else { throw Self.malformed }
        try skipPast("'")
    }

    /// Checks that all characters are permitted in XML (section 2.2). UTF-8 has no surrogates, so it checks controls, U+FFFE and
    /// U+FFFF.
    private func checkCharacters() throws(HTTPSessionError) {
        for (index, byte) in bytes.enumerated() where byte < 0x20 || byte == 0xEF {
            let isPermitted = byte == 0xEF ? !bytes[index...].starts(with: [0xEF, 0xBF, 0xBE]) : Self.isSpace(byte)
            guard isPermitted, !bytes[index...].starts(with: [0xEF, 0xBF, 0xBF]) else { throw Self.malformed }
        }
    }
}

extension XMLScanner {
    private static let malformed = refusal("the body is not well-formed XML")

    private static func refusal(_ reason: String) -> HTTPSessionError { HTTPSessionError(.cannotDecodeContent, reason) }

    /// Skips `token` if it is next.
    private mutating func skip(_ token: StaticString) -> Bool {
        guard isNext(token, at: position) else { return false }
        position += token.utf8CodeUnitCount
        return true
    }

    private mutating func skipPast(_ token: StaticString) throws(HTTPSessionError) {
        while !isNext(token, at: position) {
            position += 1
            guard position < bytes.count else { throw Self.malformed }
        }
        position += token.utf8CodeUnitCount
    }

    private func isNext(_ token: StaticString, at place: Int) -> Bool {
        let count = token.utf8CodeUnitCount
        guard bytes.count - place >= count else { return false }
        for offset in 0..<count where bytes[place + offset] != token.utf8Start[offset] { return false }
        return true
    }

    @discardableResult private mutating func skipSpaces() -> Bool {
        let start = position
        while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
        return position > start
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    private static func isASCIINameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// Returns whether the character is a `NameStartChar` (section 2.3).
    private static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x3A, 0x41...0x5A, 0x5F, 0x61...0x7A, 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D, 0x37F...0x1FFF: true
        case 0x200C...0x200D, 0x2070...0x218F, 0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF, 0xFDF0...0xFFFD: true
        case 0x10000...0xEFFFF: true
        default: false
        }
    }

    /// Returns whether the character is a `NameChar` but no `NameStartChar`.
    private static func isNameContinuation(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2D, 0x2E, 0x30...0x39, 0xB7, 0x300...0x36F, 0x203F...0x2040: true
        default: false
        }
    }
}
