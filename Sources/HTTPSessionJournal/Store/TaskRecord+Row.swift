internal import Foundation
internal import GRDB

/// What stands in `task.arrived`.
struct Arrival: Codable {
    var mark: FileMark
    var answer: Answer?
}

extension TaskLife.State {
    /// As `task.state` has it.
    var name: String {
        switch self {
        case .waiting: "waiting"
        case .started: "started"
        case .cancelling: "cancelling"
        case .arrived: "arrived"
        case .ended: "ended"
        }
    }

    init(_ row: Row) throws {
        let name: String = try row.value("state")
        switch name {
        case "waiting": self = .waiting
        case "started": self = .started
        case "cancelling": self = .cancelling
        case "arrived":
            let arrival = try Arrival(decoding: try row.value("arrived"))
            self = .arrived(arrival.mark, arrival.answer)
        case "ended": self = .ended(try Outcome(decoding: try row.value("outcome")))
        default: throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "a state '\(name)'"))
        }
    }
}

extension TaskRecord {
    init(_ row: Row) throws {
        self.init(
            id: try row.value("id"), intent: try Intent(decoding: try row.value("intent")),
            handler: try row.value("handler"), context: try row.value("context"),
            created: try row.value("created"), expires: try row.value("expires"),
            state: try TaskLife.State(row), place: String.fromDatabaseValue(row["place"]).flatMap { URL(string: $0) })
    }
}

extension Row {
    /// What GRDB's own subscripts trap on is damage here. The column has been asked for.
    fileprivate func value<Value: DatabaseValueConvertible>(_ column: String) throws -> Value {
        let value: DatabaseValue = self[column]
        if let value = Value.fromDatabaseValue(value) { return value }
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "task.\(column)"))
    }
}

extension Encodable {
    func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }
}

extension Decodable {
    init(decoding data: Data) throws { self = try JSONDecoder().decode(Self.self, from: data) }
}
