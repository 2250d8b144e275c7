import EventLoop
import Expectations
import Foundation
import GRDB
import NetworkLab
import Testing

@testable import netwatch_service

/// A history whose file somebody else has made: SQLite would execute its schema.
@Suite(.timeLimit(.minutes(10))) struct HostileHistoryTests {
    /// A view that never ends.
    private static let endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"

    /// Changes of the schema, and the object that the reason names.
    static let changes: [(sql: String, object: String)] = [
        ("DROP TABLE incident; CREATE VIEW incident AS \(endless) SELECT n AS id, n AS began FROM r", "view 'incident'"),
        ("DROP TABLE meta; CREATE VIEW meta AS \(endless) SELECT 'clean' AS key, n AS value FROM r", "view 'meta'"),
        (
            "ALTER TABLE grdb_migrations RENAME TO m; CREATE VIEW grdb_migrations AS \(endless) SELECT n AS identifier FROM r",
            "view 'grdb_migrations'"
        ),
        ("DROP TABLE grdb_migrations; CREATE TABLE grdb_migrations (identifier TEXT, a AS (1))", "table 'grdb_migrations'"),
        ("DROP TABLE grdb_migrations; CREATE VIRTUAL TABLE grdb_migrations USING fts5(identifier)", "table 'grdb_migrations'"),
        ("CREATE TRIGGER t AFTER INSERT ON target BEGIN DELETE FROM ledger; END", "trigger 't'"),
        ("CREATE INDEX i ON gap (ended)", "index 'i'"), ("CREATE VIRTUAL TABLE v USING fts5(a)", "table 'v'"),
        ("DROP INDEX incident_began", "index 'incident_began'"),
        ("ALTER TABLE gap ADD COLUMN more AS (began + 1)", "table 'gap'"),
        ("DROP TABLE gap; CREATE TABLE gap (began INTEGER PRIMARY KEY, ended INTEGER, reason TEXT)", "table 'gap'"),
    ]

    private func makeHistory(_ sql: String) throws -> TestHistory {
        let history = try TestHistory()
        try history.openWithTurns().close()
        let queue = try DatabaseQueue(path: history.path("history.sqlite"))
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
        return history
    }

    @Test(arguments: changes) func `a history with another schema is not read`(sql: String, object: String) throws {
        let history = try makeHistory(sql)
        let calendar = history.calendar
        let error = #expect(throws: StoreError.self) {
            _ = try HistoryReader.open(directory: history.settings.directory, calendar: calendar)
        }
        #expect(error?.code == .inputOutput && error?.reason.contains(object) == true, "\(String(describing: error))")
    }

    @Test(arguments: changes) func `a history with another schema is set aside by the service`(sql: String, object: String) throws
    {
        let history = try makeHistory(sql)
        let (store, recovered) = try history.open()
        #expect(recovered.notes.count == 1 && recovered.notes[0].contains(object), "\(recovered.notes)")
        #expect(recovered.targets.isEmpty && history.names.contains { $0.hasPrefix("history.sqlite.damaged-") })
        store.close()
    }

    @Test func `statistics of ANALYZE are no other schema`() throws {
        let history = try makeHistory("ANALYZE")
        try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar).close()
        let (store, recovered) = try history.open(at: TestHistory.noon + 60_000)
        #expect(recovered.notes.isEmpty && recovered.targets.count == 1)
        store.close()
    }

    @Test func `no connection trusts the schema of its file`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        try expectEqual(store.database.read { try Bool.fetchOne($0, sql: "PRAGMA trusted_schema") }, false)
        try expectEqual(reader.read { try Bool.fetchOne($0, sql: "PRAGMA trusted_schema") }, false)
        reader.close()
        store.close()
    }

    @Test func `a query without end is ended by the time limit, and the next one works`() throws {
        let history = try TestHistory.withTurns().stopped
        let directory = StateDirectory(path: history.settings.directory)
        let reader = try HistoryReader(following: directory, calendar: history.calendar, totalTime: nil)
        let sql = "\(Self.endless) SELECT max(n) FROM r"
        let interrupted = #expect(throws: StoreError.self) {
            try reader.run(until: MonotonicClock.now() + 20_000_000) { reader in
                try reader.read { try Int.fetchOne($0, sql: sql) }
            }
        }
        expectEqual(interrupted?.code, .timedOut)
        try expectEqual(reader.targets().count, 1)
        reader.close()
        let limited = try HistoryReader(following: directory, calendar: history.calendar, totalTime: 20_000_000)
        let late = #expect(throws: StoreError.self) { try limited.read { try Int.fetchOne($0, sql: sql) } }
        expectEqual(late?.code, .timedOut)
        limited.close()
    }
}
