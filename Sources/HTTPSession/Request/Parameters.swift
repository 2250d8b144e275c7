public import FoundationEssentials

/// What a request is to say, before a serializer decides how: in the query, as a form, as JSON, as a property list.
///
/// Written with literals (`["user": ["name": "Ada", "ids": [1, 2]]]`), made from a dictionary of Swift values
/// (`init(_:)`) or from an `Encodable` (``init(encoding:encoder:)``).
@nonexhaustive public enum Parameters: Hashable, Sendable {
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
    /// RFC 3339 in a query or form, a property list's date, of the years 1 to 9999; JSON has none.
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

    /// RFC 3339 and property lists have four digits for the year. Foundation writes other dates as some that they are not.
    private static let dates = -62_135_769_600.0..<253_402_300_800.0

    private var hasUnwritableDate: Bool {
        switch self {
        case .date(let date): !Self.dates.contains(date.timeIntervalSince1970)
        case .array(let elements): elements.contains(where: \.hasUnwritableDate)
        case .dictionary(let pairs): pairs.values.contains(where: \.hasUnwritableDate)
        case .set(let elements): elements.contains(where: \.hasUnwritableDate)
        default: false
        }
    }

    /// Refuses containers deeper than ``maximumDepth``, before anything walks them, and dates that no format has.
    package func requireWritable() throws(HTTPSessionError) {
        guard isShallow else {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters are nested more than \(Self.maximumDepth) deep")
        }
        guard !hasUnwritableDate else {
            throw HTTPSessionError(.cannotEncodeRequest, "a date of the parameters is outside of the years 1 to 9999")
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
