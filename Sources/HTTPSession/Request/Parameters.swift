public import FoundationEssentials

/// The parameters of a request. The request's serializer writes them into the query, as a form, as JSON or as a property list.
///
/// They are written with literals (`["user": ["name": "Ada", "ids": [1, 2]]]`), made from a dictionary of Swift values
/// (`init(_:)`) or from an `Encodable` (``init(encoding:encoder:)``).
@nonexhaustive public enum Parameters: Hashable, Sendable {
    /// Null: in a query the key without `=`, in a multipart form an empty field, in JSON `null`. A property list cannot have it.
    case null
    /// A truth value: `1` or `0` in a query or form.
    case bool(Bool)
    /// An integer.
    case integer(Int64)
    /// An integer above `Int64.max`.
    case unsigned(UInt64)
    /// A floating-point number.
    case number(Double)
    /// A string.
    case string(String)
    /// Data: escaped bytes in a query or form, data in a property list. JSON cannot have it.
    case data(Data)
    /// A date of the years 1 to 9999: RFC 3339 in a query or form, a date in a property list. JSON cannot have it.
    case date(Date)
    /// An array: `key[]=` for each element in a query.
    case array([Parameters])
    /// A dictionary: `key[child]=` for each pair in a query, sorted by key.
    case dictionary([String: Parameters])
    /// A set: `key=` for each element in a query, sorted. Neither JSON nor a property list can have it.
    case set(Set<Parameters>)

    /// The largest depth of nested containers; deeper ones throw ``HTTPSessionError/Code/cannotEncodeRequest``. The JSON and property list readers of
    /// Foundation have the same limit.
    public static let maximumDepth = 512

    /// Whether this is a container without elements.
    public var isEmpty: Bool {
        switch self {
        case .array(let elements): elements.isEmpty
        case .dictionary(let pairs): pairs.isEmpty
        case .set(let elements): elements.isEmpty
        default: false
        }
    }

    /// Whether containers are nested at most ``maximumDepth`` deep.
    var isShallow: Bool { isShallow(levels: Self.maximumDepth) }

    private func isShallow(levels: Int) -> Bool {
        switch self {
        case .array(let elements): levels > 0 && elements.allSatisfy { $0.isShallow(levels: levels - 1) }
        case .dictionary(let pairs): levels > 0 && pairs.values.allSatisfy { $0.isShallow(levels: levels - 1) }
        case .set(let elements): levels > 0 && elements.allSatisfy { $0.isShallow(levels: levels - 1) }
        default: true
        }
    }

    /// RFC 3339 and property lists have four digits for the year. Foundation writes other dates incorrectly.
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

    /// Throws for containers nested deeper than ``maximumDepth``, and for dates outside of the years 1 to 9999.
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
    /// Creates a dictionary. If a key is repeated, the last value counts.
    public init(dictionaryLiteral elements: (String, Parameters)...) {
        self = .dictionary(Dictionary(elements) { _, last in last })
    }

    /// Creates an array.
    public init(arrayLiteral elements: Parameters...) { self = .array(elements) }

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// Creates a floating-point number.
    public init(floatLiteral value: Double) { self = .number(value) }

    /// Creates a truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Creates null.
    public init(nilLiteral: ()) { self = .null }
}
