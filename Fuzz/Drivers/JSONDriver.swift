import FoundationEssentials

@testable import HTTPSession

extension FuzzDriver {
    /// JSON texts of servers. A text that the own parser accepts has the same value after encoding and parsing it again.
    static let json = FuzzDriver(name: "json") { input in
        let value: JSONValue
        do {
            value = try JSONValue(parsing: Data(input))
        } catch let error as HTTPSessionError {
            return try require(error.code == .cannotDecodeContent, "error: \(error)")
        }
        let encoded: Data
        do {
            encoded = try JSONEncoder().encode(value)
        } catch {
            throw BrokenRule(description: "a parsed text is not encoded: \(error)")
        }
        try require(isEqual(try JSONValue(parsing: encoded), value), "\(String(decoding: encoded, as: UTF8.self))")
    }

    /// An encoder writes a number without a fraction as an integer.
    private static func isEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
        switch (left, right) {
        case (.array(let left), .array(let right)): left.count == right.count && zip(left, right).allSatisfy(isEqual)
        case (.object(let left), .object(let right)):
            left.count == right.count && left.allSatisfy { name, value in right[name].map { isEqual(value, $0) } ?? false }
        case (.integer(let left), .number(let right)): Double(left) == right
        default: left == right
        }
    }
}
