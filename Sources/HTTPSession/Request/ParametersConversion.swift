public import FoundationEssentials

extension Parameters {
    /// Creates parameters of Swift values: dictionaries with string keys, arrays, sets, numbers, strings, `Data`, `Date`, `URL`, `UUID`, `nil`.
    ///
    /// Other types, and nesting deeper than ``maximumDepth``, throw ``HTTPSessionError/Code/cannotEncodeRequest``.
    public init(_ values: [String: any Sendable]) throws(HTTPSessionError) {
        self = try Self.converting(values, levels: Self.maximumDepth)
    }

    /// Creates parameters of an `Encodable` by way of JSON, with the encoder's strategies for keys, dates and data. Values that JSON does not have
    /// (NaN) are errors. Integers of 64 bits are exact; a `Decimal` is rounded to a `Double`.
    public init(encoding value: some Encodable, encoder: JSONEncoder = JSONEncoder()) throws(HTTPSessionError) {
        do {
            self = try JSONParser.parse(try encoder.encode(value))
        } catch {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters cannot be encoded", underlying: error)
        }
    }

    /// Creates parameters of a JSON value.
    public init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .integer(value)
        case .number(let value): self = .number(value)
        case .string(let value): self = .string(value)
        case .array(let elements): self = .array(elements.map(Parameters.init))
        case .object(let members): self = .dictionary(members.mapValues(Parameters.init))
        }
    }

    private static func converting(_ value: any Sendable, levels: Int) throws(HTTPSessionError) -> Parameters {
        if let leaf = leaf(value) { return leaf }
        guard levels > 0 else {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters are nested more than \(maximumDepth) deep")
        }
        switch value {
        case let pairs as [String: any Sendable]:
            var converted: [String: Parameters] = [:]
            for (key, value) in pairs { converted[key] = try converting(value, levels: levels - 1) }
            return .dictionary(converted)
        case let elements as [any Sendable]:
            var converted: [Parameters] = []
            for element in elements { converted.append(try converting(element, levels: levels - 1)) }
            return .array(converted)
        case let elements as Set<AnyHashable>:
            var converted: Set<Parameters> = []
            for element in elements {
                guard let leaf = leaf(element.base) else { throw unknown(element.base) }
                converted.insert(leaf)
            }
            return .set(converted)
        default:
            throw unknown(value)
        }
    }

    private static func unknown(_ value: Any) -> HTTPSessionError {
        HTTPSessionError(.cannotEncodeRequest, "a parameter is a \(type(of: value)), which no serializer knows")
    }

    private static func leaf(_ value: Any) -> Parameters? {
        switch value {
        case let value as Parameters: value
        case let value as Bool: .bool(value)
        case let value as any BinaryInteger: whole(value)
        case let value as any BinaryFloatingPoint: .number(Double(value))
        case let value as any StringProtocol: .string(String(value))
        case let value as Data: .data(value)
        case let value as Date: .date(value)
        case let value as URL: .string(value.absoluteString)
        case let value as UUID: .string(value.uuidString)
        case let value as Decimal: .string(value.description)
        case Optional<Any>.none: .null
        default: nil
        }
    }

    private static func whole(_ value: some BinaryInteger) -> Parameters {
        if let value = Int64(exactly: value) { return .integer(value) }
        if let value = UInt64(exactly: value) { return .unsigned(value) }
        // Int128 and the like are read by their digits.
        return .string(String(value))
    }
}

extension Parameters: JSONTree {
    static func object(_ members: [String: Parameters]) -> Parameters { .dictionary(members) }
}
