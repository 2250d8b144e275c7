public import FoundationEssentials

/// A JSON value (RFC 8259).
public enum JSONValue: Hashable, Sendable {
    /// The value `null`.
    case null
    /// The value `true` or `false`.
    case bool(Bool)
    /// A number without fraction and exponent in the range of `Int64`.
    case integer(Int64)
    /// Any other number, rounded to a `Double`: integers beyond 2^53 are not exact.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object. If a name is repeated in the text, the last member counts.
    case object([String: JSONValue])

    /// Parses a JSON text in UTF-8, UTF-16 or UTF-32, whose outermost value may be of any type.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` with the position for a text that is not JSON. Lone surrogates, numbers beyond
    ///   `Double` and more than 512 nested containers are errors too.
    public init(parsing data: Data) throws(HTTPSessionError) {
        self = try JSONParser.parse(data)
    }

    /// The member of an object; `nil` if there is none, or if the value is not an object.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The element of an array; `nil` if the index is out of range, or if the value is not an array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The text of a string; `nil` if the value is not a string.
    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The value without null members of objects and null elements of arrays, at every depth. An outermost null stays.
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
    /// Creates an object. If a name is repeated, the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }

    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }

    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Creates the value `null`.
    public init(nilLiteral: ()) { self = .null }
}

extension JSONValue: Codable {
    /// Encodes the value as JSON.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }

    /// Decodes any value of a decoder. ``init(parsing:)`` is faster for a JSON text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let elements = try? container.decode([JSONValue].self) {
            self = .array(elements)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}
