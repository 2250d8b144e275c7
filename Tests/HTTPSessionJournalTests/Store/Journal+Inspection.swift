import GRDB

@testable import HTTPSessionJournal

extension Journal {
    /// The value of SQLite's `PRAGMA synchronous`: 2 is FULL.
    var synchronous: Int? { try? database.read { try Int.fetchOne($0, sql: "PRAGMA synchronous") } }

    /// Makes every transaction that writes fail, as if the disk were full, or ends that.
    func refuseWrites(_ refuses: Bool) throws {
        try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA query_only = \(refuses ? 1 : 0)") }
    }
}
