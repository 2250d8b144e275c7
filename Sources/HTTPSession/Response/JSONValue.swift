public import FoundationEssentials

/// A JSON text's value (RFC 8259), safe to share.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// A number written without fraction and exponent that `Int64` holds.
    case integer(Int64)
    /// Any other number, rounded to a `Double`: whole numbers beyond 2^53 are not exact.
    case number(Double)
    case string(String)
    case array([JSONValue])
    /// The members; of a repeated name the last counts.
    case object([String: JSONValue])

    /// Reads a JSON text in UTF-8, UTF-16 or UTF-32, whatever its outermost value is.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` with the position for what is no JSON, among it lone surrogates, numbers
    ///   beyond `Double` and more than 512 containers in each other.
    public init(parsing data: Data) throws(HTTPSessionError) {
        self = try JSONParser.parse(data)
    }

    /// The member of an object; `nil` where there is none or this is no object.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The element of an array; `nil` where there is none or this is no array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The text of a string; `nil` for any other value.
    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// Without members and elements that are null, all the way down. A null that stands alone stays.
    public var removingNullValues: JSONValue {
        switch self {
        case .array(let elements): .array(elements.filter { $0 != .null }.map(\.removingNullValues))
        case .object(let members): .object(members.filter { $0.value != .null }.mapValues(\.removingNullValues))
        default: self
        }
    }
}

extension JSONValue: JSONTree {
    static func unsigned(_ value: UInt64) -> JSONValue { .number(Double(value)) }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
    /// An object; of a repeated name the last value stays.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }

    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }

    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Null.
    public init(nilLiteral: ()) { self = .null }
}
