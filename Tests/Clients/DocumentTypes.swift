// The types that the examples of the documents leave to the reader's program.
import Foundation
import HTTPSession
import HTTPSessionJournal
import Reachability

struct User: Codable, Sendable {
    var name: String
}

struct Order: Codable, Sendable {
    var id: Int?
    var item: String
}

struct NetworkModel {
    let monitor: PathMonitor
    var text: String { monitor.current?.path.status == .satisfied ? "satisfied" : "unsatisfied" }
}

func show(_ event: DurableEvent) async { print(event.outcome) }
