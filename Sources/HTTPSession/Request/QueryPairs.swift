package import FoundationEssentials

/// A parameter without its nesting: `user[ids][]` and one value.
package struct QueryPair: Hashable, Sendable {
    /// The path to the value, not escaped.
    package var name: String
    package var value: Value

    package enum Value: Hashable, Sendable {
        /// The name stands alone, without `=`.
        case none
        case text(String)
        case bytes(Data)
    }

    /// `name=value`, both escaped whole, so that brackets go out as `%5B%5D`.
    package var escaped: String {
        let name = PercentEscaping.escape(name)
        return switch value {
        case .none: name
        case .text(let text): "\(name)=\(PercentEscaping.escape(text))"
        case .bytes(let bytes): "\(name)=\(PercentEscaping.escape(bytes: bytes))"
        }
    }
}

extension Parameters {
    /// The query string: pairs joined by `&`, dictionaries sorted by key, arrays as `key[]`, sets as the key repeated.
    /// Empty containers vanish.
    ///
    /// Throws ``HTTPSessionError/Code/cannotEncodeRequest`` where the outermost value is not a dictionary, for then nothing gives the
    /// names, and for nesting deeper than ``maximumDepth``.
    public func queryString() throws(HTTPSessionError) -> String {
        try queryPairs().map(\.escaped).joined(separator: "&")
    }

    /// The pairs of ``queryString()``.
    package func queryPairs() throws(HTTPSessionError) -> [QueryPair] {
        guard case .dictionary(let pairs) = self else {
            throw HTTPSessionError(.cannotEncodeRequest, "parameters in a query or form must be a dictionary")
        }
        try requireWritable()
        return pairs.sorted { $0.key < $1.key }.flatMap { key, value in value.pairs(under: key) }
    }

    private func pairs(under name: String) -> [QueryPair] {
        switch self {
        case .dictionary(let pairs):
            pairs.sorted { $0.key < $1.key }.flatMap { key, value in value.pairs(under: "\(name)[\(key)]") }
        case .array(let elements):
            elements.flatMap { $0.pairs(under: "\(name)[]") }
        case .set(let elements):
            elements.map { $0.pairs(under: name) }
                .sorted { one, other in one.lexicographicallyPrecedes(other) { $0.escaped < $1.escaped } }
                .flatMap(\.self)
        default:
            [QueryPair(name: name, value: leafValue)]
        }
    }

    private var leafValue: QueryPair.Value {
        switch self {
        case .bool(let value): .text(value ? "1" : "0")
        case .integer(let value): .text(String(value))
        case .unsigned(let value): .text(String(value))
        // A whole number without its ".0", as AFNetworking's NSNumber wrote it.
        case .number(let value): .text(Int64(exactly: value).map(String.init) ?? String(value))
        case .string(let value): .text(value)
        case .data(let value): .bytes(value)
        case .date(let value): .text(value.formatted(.iso8601))
        case .null, .array, .dictionary, .set: .none
        }
    }
}
