public import Foundation

extension Parameters {
    /// From Swift values: dictionaries with string keys, arrays, sets, numbers, strings, `Data`, `Date`, `URL`, `UUID`, `nil`.
    ///
    /// Any other type is an error that names it, and so is nesting deeper than ``maximumDepth``.
    public init(_ values: [String: any Sendable]) throws(HTTPSessionError) {
        self = try Self.converting(values, levels: Self.maximumDepth)
    }

    /// From an `Encodable`, by way of JSON: what the encoder does to keys, dates and data is done here too, and what JSON cannot
    /// say (NaN) is an error. Whole numbers of 64 bits stay exact; a `Decimal` with more digits than a `Double` has is rounded to one.
    public init(encoding value: some Encodable, encoder: JSONEncoder = JSONEncoder()) throws(HTTPSessionError) {
        do {
            self.init(
                foundationObject: try JSONSerialization.jsonObject(with: encoder.encode(value), options: [.fragmentsAllowed]))
        } catch {
            throw HTTPSessionError(.cannotEncodeRequest, "the parameters cannot be encoded", underlying: error)
        }
    }

    /// What `JSONSerialization` makes: at most 512 containers in each other, so that recursion ends.
    private init(foundationObject: Any) {
        switch foundationObject {
        case let elements as [Any]: self = .array(elements.map(Parameters.init(foundationObject:)))
        case let members as [String: Any]: self = .dictionary(members.mapValues(Parameters.init(foundationObject:)))
        // JSONValue has no number for these.
        case let number as NSNumber where String(cString: number.objCType) == "Q": self = .unsigned(number.uint64Value)
        case let other: self.init(JSONValue(foundationObject: other))
        }
    }

    /// The same value in the vocabulary of requests.
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
        // Int128 and its like: the digits are what counts.
        return .string(String(value))
    }
}

extension Parameters {
    /// The form in which Foundation's JSON and property list writers take it; `nil` where they have none: a set, null in a property
    /// list, data, dates and numbers that are not finite in JSON. At most ``maximumDepth`` deep.
    func foundationObject(for format: FoundationFormat) -> Any? {
        switch self {
        case .null: return format == .json ? NSNull() : nil
        case .bool(let value): return value
        case .integer(let value): return value
        case .unsigned(let value): return value
        case .number(let value): return value.isFinite || format == .propertyList ? value : nil
        case .string(let value): return value
        case .data(let value): return format == .propertyList ? value : nil
        case .date(let value): return format == .propertyList ? value : nil
        case .set: return nil
        case .array(let elements):
            var converted: [Any] = []
            for element in elements {
                guard let object = element.foundationObject(for: format) else { return nil }
                converted.append(object)
            }
            return converted
        case .dictionary(let pairs):
            var converted: [String: Any] = [:]
            for (key, value) in pairs {
                guard let object = value.foundationObject(for: format) else { return nil }
                converted[key] = object
            }
            return converted
        }
    }

    enum FoundationFormat {
        case json
        case propertyList
    }
}
