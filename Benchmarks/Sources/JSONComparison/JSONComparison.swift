internal import Foundation
internal import HTTPSession

/// Measures the parsing of 1 MB of JSON by HTTPSession's parser, by `JSONSerialization` and by `JSONDecoder`, in alternating
/// rounds. Prints the best of twenty rounds of each.
@main
enum JSONComparison {
    static func main() throws {
        let text = try JSONSerialization.data(withJSONObject: (0..<5_000).map(record))
        var best = [Double](repeating: .infinity, count: 3)
        for _ in 0..<20 {
            best[0] = min(best[0], try milliseconds { _ = try JSONValue(parsing: text) })
            best[1] = min(best[1], try milliseconds { _ = try JSONSerialization.jsonObject(with: text) })
            best[2] = min(best[2], try milliseconds { _ = try JSONDecoder().decode(DecodedValue.self, from: text) })
        }
        print("\(text.count) bytes of JSON")
        for (name, time) in zip(["JSONValue(parsing:)", "JSONSerialization", "JSONDecoder, any value"], best) {
            print("\(name): \(String(format: "%.1f", time)) ms, ratio \(String(format: "%.2f", time / best[1]))")
        }
    }

    private static func record(_ number: Int) -> [String: Any] {
        [
            "id": number, "name": "User number \(number) ü", "email": "user\(number)@example.com", "score": Double(number) * 1.37,
            "active": number % 2 == 0, "tags": ["a", "b\"c", "a longer tag \(number)"],
            "address": ["street": "Main \(number)", "zip": NSNull(), "place": [1.5, -2.25]],
        ]
    }

    private static func milliseconds(_ body: () throws -> Void) rethrows -> Double {
        try ContinuousClock().measure(body) / .milliseconds(1)
    }
}

/// A value of any type as FoundationEssentials can decode it: each type is tried in turn, the frequent ones first.
private enum DecodedValue: Decodable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([DecodedValue])
    case object([String: DecodedValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .integer(value)
        } else if let members = try? container.decode([String: DecodedValue].self) {
            self = .object(members)
        } else if let elements = try? container.decode([DecodedValue].self) {
            self = .array(elements)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if container.decodeNil() {
            self = .null
        } else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no JSON value")
        }
    }
}
