import FoundationEssentials
import GRDB
import Reachability

extension HistoryReader {
    /// The numbers of the targets of the incidents that overlap a time, by the identifiers of the incidents.
    ///
    /// - Parameter span: the time in milliseconds since 1970.
    /// - Returns: the numbers; an incident without known targets is missing.
    /// - Throws: ``StoreError`` if the database cannot be read in time.
    func members(_ span: Range<Int64>) throws(StoreError) -> [String: TargetSet] {
        try read { database in
            var members: [String: TargetSet] = [:]
            func forRows(_ table: String, _ column: String, _ body: (String, Row) -> Void) throws {
                let rows = try Row.fetchCursor(
                    database,
                    sql: """
                        SELECT \(table).id, \(table).\(column) FROM \(table) JOIN incident ON incident.id = \(table).id
                        WHERE incident.began < ? AND (incident.ended IS NULL OR incident.ended >= ?)
                        """, arguments: [span.upperBound, span.lowerBound])
                while let row = try rows.next() {
                    try checkTime()
                    if let id = row.text(0) { body(id, row) }
                }
            }
            try forRows("member", "target") { id, row in
                // A damaged number would need memory for all smaller ones.
                guard let number = row.integer(1), 0..<Int64(TurnCoder.targetLimit) ~= number else { return }
                members[id, default: TargetSet()].insert(Int(number))
            }
            try forRows("members", "targets") { id, row in
                guard let data = row.bytes(1), let set = TargetSet(bytes: data) else { return }
                members[id, default: TargetSet()].formUnion(set)
            }
            return members
        }
    }
}
