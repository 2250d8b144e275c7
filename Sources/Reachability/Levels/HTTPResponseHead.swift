/// The head of a response: the status line and the fields (RFC 9112 sections 4 and 5).
package struct HTTPResponseHead: Hashable, Sendable {
    /// The minor version of HTTP/1: 0 or 1, or a later one.
    package let minorVersion: Int
    /// The status code, 100 to 999.
    package let status: Int
    /// The reason phrase as received.
    package let reason: [UInt8]

    private struct Field: Hashable, Sendable {
        let name: Range<Int>
        var value: Range<Int>
    }

    // The names and values without what separates them: one array for all fields.
    private var storage: [UInt8] = []
    private var fields: [Field] = []

    /// The version, such as `1.1`.
    package var version: String { "1.\(minorVersion)" }
    /// The number of fields.
    package var fieldCount: Int { fields.count }

    /// The text with which a status line begins.
    static let beginning = Array("HTTP/".utf8)

    /// Parses a status line without its line end: version, space, three digits, and usually a space and a reason. Like common clients, this
    /// accepts a line without the second space.
    init(statusLine line: ArraySlice<UInt8>) throws(HTTPExchangeFailure) {
        let line = Array(line)
        guard line.starts(with: Self.beginning) else { throw .notHTTP }
        let version = line.dropFirst(Self.beginning.count).prefix { $0 != HTTPGrammar.space }
        guard let major = version.first, HTTPGrammar.isDigit(major) else { throw .statusLine }
        guard major == UInt8(ascii: "1") else { throw .version }
        guard version.count == 3, version[version.startIndex + 1] == UInt8(ascii: "."), let minor = version.last,
            HTTPGrammar.isDigit(minor)
        else { throw .version }
        let rest = line[version.endIndex...].dropFirst()
        let digits = rest.prefix(3)
        guard digits.count == 3, digits.allSatisfy(HTTPGrammar.isDigit) else { throw .statusLine }
        let status = digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
        let behind = rest.dropFirst(3)
        guard status >= 100, behind.first.map(HTTPGrammar.isBlank) ?? true else { throw .statusLine }
        minorVersion = Int(minor) - 0x30
        self.status = status
        reason = Array(HTTPGrammar.trimmed(behind))
    }

    /// Parses a field line without its line end, and adds the field. A line that begins with a blank continues the last field (RFC 9112
    /// section 5.2). Blanks before the colon are removed (section 5.1).
    mutating func add(fieldLine line: ArraySlice<UInt8>) throws(HTTPExchangeFailure) {
        guard line.allSatisfy({ $0 != 0 && $0 != HTTPGrammar.carriageReturn }) else { throw .field }
        if let first = line.first, HTTPGrammar.isBlank(first) { return try fold(line) }
        guard fields.count < HTTPLimit.fields.value else { throw .limit }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .field }
        let name = HTTPGrammar.trimmed(line[..<colon])
        guard HTTPGrammar.isToken(name) else { throw .field }
        let start = storage.count
        storage += name
        let middle = storage.count
        storage += HTTPGrammar.trimmed(line[(colon + 1)...])
        fields.append(Field(name: start..<middle, value: middle..<storage.count))
    }

    private mutating func fold(_ line: ArraySlice<UInt8>) throws(HTTPExchangeFailure) {
        guard let last = fields.indices.last else { throw .field }
        let text = HTTPGrammar.trimmed(line)
        guard !text.isEmpty else { return }
        // The value of the last field ends the storage.
        if !fields[last].value.isEmpty { storage.append(HTTPGrammar.space) }
        storage += text
        fields[last].value = fields[last].value.lowerBound..<storage.count
    }

    /// Returns the values of all fields with the name, which is in lower case.
    package func values(of name: String) -> [ArraySlice<UInt8>] {
        fields.lazy.filter { HTTPGrammar.isName(storage[$0.name], name) }.map { storage[$0.value] }
    }

    /// Returns the value of the first field with the name, which is in lower case.
    package func value(of name: String) -> ArraySlice<UInt8>? {
        fields.first { HTTPGrammar.isName(storage[$0.name], name) }.map { storage[$0.value] }
    }
}

extension HTTPExchangeFailure: Error {}
