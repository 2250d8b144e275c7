public import Foundation

/// What a request is to say, before a serializer decides how: in the query, as a form, as JSON, as a property list.
///
/// Written with literals (`["user": ["name": "Ada", "ids": [1, 2]]]`), made from a dictionary of Swift values
/// (``init(_:)``) or from an `Encodable` (``init(encoding:encoder:)``).
public enum Parameters: Hashable, Sendable {
    /// In a query the key without `=`, in a form the empty string, in JSON `null`; no property list has it.
    case null
    /// In a query and a form `1` or `0`.
    case bool(Bool)
    case integer(Int64)
    /// Whole numbers above `Int64.max`.
    case unsigned(UInt64)
    case number(Double)
    case string(String)
    /// The bytes as they are in a form or query (escaped), a property list's data; JSON has none.
    case data(Data)
    /// RFC 3339 in a query or form, a property list's date; JSON has none.
    case date(Date)
    /// In a query `key[]=` for each element.
    case array([Parameters])
    /// In a query `key[child]=` for each pair, sorted by key.
    case dictionary([String: Parameters])
    /// In a query `key=` for each element, sorted; neither JSON nor a property list has it.
    case set(Set<Parameters>)

    /// How deep containers may stand in each other; deeper ones are refused (``HTTPSessionError/Code/cannotEncodeRequest``).
    /// Foundation's JSON and property list readers have the same limit.
    public static let maximumDepth = 512

    /// `true` for a container without elements.
    public var isEmpty: Bool {
        switch self {
        case .array(let elements): elements.isEmpty
        case .dictionary(let pairs): pairs.isEmpty
        case .set(let elements): elements.isEmpty
        default: false
        }
    }

    /// Whether containers stand in each other at most ``maximumDepth`` deep. Looks no deeper than that itself.
    var isShallow: Bool { isShallow(levels: Self.maximumDepth) }

    private func isShallow(levels: Int) -> Bool {
        switch self {
        case .array(let elements): levels > 0 && elements.allSatisfy { $0.isShallow(levels: levels - 1) }
        case .dictionary(let pairs): levels > 0 && pairs.values.allSatisfy { $0.isShallow(levels: levels - 1) }
        case .set(let elements): levels > 0 && elements.allSatisfy { $0.isShallow(levels: levels - 1) }
        default: true
        }
    }

    /// Refuses containers deeper than ``maximumDepth``, before anything walks them.
    func requireShallow() throws(HTTPSessionError) {
        guard isShallow else {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters are nested more than \(Self.maximumDepth) deep")
        }
    }
}

extension Parameters: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringInterpolation,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
    /// A dictionary; of a repeated key the last value stays.
    public init(dictionaryLiteral elements: (String, Parameters)...) {
        self = .dictionary(Dictionary(elements) { _, last in last })
    }

    /// An array.
    public init(arrayLiteral elements: Parameters...) { self = .array(elements) }

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
