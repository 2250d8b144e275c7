internal import Foundation
internal import HTTPSession

extension Parameters {
    /// The value as an object for `PropertyListSerialization`; `nil` if it contains a set or null, which property lists cannot
    /// hold. Its depth is at most `Parameters.maximumDepth`.
    var propertyList: Any? {
        switch self {
        case .null, .set: return nil
        case .bool(let value): return value
        case .integer(let value): return value
        case .unsigned(let value): return value
        case .number(let value): return value
        case .string(let value): return value
        case .data(let value): return value
        case .date(let value): return value
        case .array(let elements):
            var converted: [Any] = []
            for element in elements {
                guard let object = element.propertyList else { return nil }
                converted.append(object)
            }
            return converted
        case .dictionary(let pairs):
            var converted: [String: Any] = [:]
            for (key, value) in pairs {
                guard let object = value.propertyList else { return nil }
                converted[key] = object
            }
            return converted
        }
    }
}
