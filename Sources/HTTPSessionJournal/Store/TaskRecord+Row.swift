internal import Foundation
internal import GRDB

/// The JSON of the column `task.arrived`, whose keys are these names.
struct Arrival: Codable {
    var mark: FileIdentity
    var answer: FinalResponse?
}

extension TaskLifecycle.State {
    /// The value of the column `task.state`.
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
        default: throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "an unknown state '\(name)'"))
        }
    }
}

extension TaskRecord {
    init(_ row: Row) throws {
        let handler: String = try row.value("handler")
        self.init(
            id: try row.value("id"), intent: try Intent(decoding: try row.value("intent")),
            handler: handler.isEmpty ? nil : handler, context: try row.value("context"),
            created: try row.value("created"), expires: try row.value("expires"),
            state: try TaskLifecycle.State(row),
            uploadLocation: String.fromDatabaseValue(row["place"]).flatMap { URL(string: $0) })
    }
}

extension Row {
    /// The value of a selected column. A value that does not decode is damage: GRDB's own subscripts would trap.
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
