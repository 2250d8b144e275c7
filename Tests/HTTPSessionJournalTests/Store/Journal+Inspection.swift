import GRDB

@testable import HTTPSessionJournal

extension Journal {
    /// What SQLite has been told to do when a transaction ends: 2 is FULL.
    var synchronous: Int? { try? database.read { try Int.fetchOne($0, sql: "PRAGMA synchronous") } }

    /// Every transaction that writes fails from now on, as if the disk took nothing.
    func refuseWrites(_ refuses: Bool) throws {
        try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA query_only = \(refuses ? 1 : 0)") }
    }
}
