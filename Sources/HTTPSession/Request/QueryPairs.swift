package import FoundationEssentials
internal import Wire

/// A name and value of a query, made of nested parameters: `user[ids][]` and one value.
package struct QueryPair: Hashable, Sendable {
    /// The name, not escaped.
    package var name: String
    package var value: Value

    package enum Value: Hashable, Sendable {
        /// No value: the name without `=`.
        case none
        case text(String)
        case bytes(Data)
    }

    /// The escaped `name=value`. Brackets are escaped as `%5B%5D`.
    package var escaped: String {
        let name = QueryPair.escape(name.utf8)
        return switch value {
        case .none: name
        case .text(let text): "\(name)=\(QueryPair.escape(text.utf8))"
        case .bytes(let bytes): "\(name)=\(QueryPair.escape(bytes))"
        }
    }

    /// Escapes all bytes except the unreserved characters, `/` and `?` (RFC 3986 section 3.4).
    package static func escape(_ bytes: some Collection<UInt8>) -> String {
        PercentEncoding.encode(bytes) { !PercentEncoding.isUnreserved($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    }
}

extension Parameters {
    /// Returns the query string: pairs joined by `&`, dictionaries sorted by key, arrays as `key[]`, sets as a repeated key. Empty containers are
    /// left out.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotEncodeRequest`` if the outermost value is not a dictionary, so that there are no names, and for nesting
    ///   deeper than ``maximumDepth``.
    public func queryString() throws(HTTPSessionError) -> String {
        try queryPairs().map(\.escaped).joined(separator: "&")
    }

    /// Returns the pairs of ``queryString()``.
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
        // An integral number without ".0", as AFNetworking's NSNumber wrote it.
        case .number(let value): .text(Int64(exactly: value).map(String.init) ?? String(value))
        case .string(let value): .text(value)
        case .data(let value): .bytes(value)
        case .date(let value): .text(value.formatted(.iso8601))
        case .null, .array, .dictionary, .set: .none
        }
    }
}
