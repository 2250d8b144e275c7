import Expectations
import Foundation
import GRDB
import HTTPSession
import HTTPTypes
import NetworkLab
import Testing

@testable import HTTPSessionJournal

struct JournalTests {
    private let folder: ScratchDirectory
    private var path: String { folder.file("journal.sqlite") }

    init() throws { folder = try ScratchDirectory() }

    private func record(_ id: String = "a") throws -> TaskRecord {
        let url = try #require(URL(string: "https://example.com/x?y=z"))
        var request = TransferRequest(url: url, headerFields: [.accept: "a/b"])
        request.options.retryPolicy = RetryPolicy(maximumRetries: 3, baseDelay: .milliseconds(7))
        request.options.priority = .high
        let destination = DownloadDestination(
            folder.url("file"), existingFile: .replace, expectedDigest: ContentDigest(.sha256, Data(repeating: 1, count: 32)))
        let intent = try Intent(request, to: destination, uploadProtocol: nil, writesSecrets: false) {
            (_) throws(DurableSessionError) in FileIdentity(inode: 1, size: 1, modified: 1)
        }
        return TaskRecord(id: id, intent: intent, handler: "h", context: Data("c".utf8), created: 1, expires: 2)
    }

    private func open() throws -> (journal: Journal, records: [TaskRecord], damagedJournal: String?) {
        let (journal, records, damagedJournal) = try Journal.open(path)
        return (journal, records, damagedJournal)
    }

    @Test func `tasks, states and events are the same after the journal is opened again`() throws {
        let first = try open().journal
        expectEqual(first.synchronous, 2)
        var (one, two) = (try record("1"), try record("2"))
        try first.insert(one)
        try first.insert(two)
        let failure = Failure(HTTPSessionError(.connectionLost, "why", context: .init(statusCode: 7, curlCode: 56)))
        try first.write(.ended(.failed(failure)), of: "2")
        let file = FileIdentity(inode: .max, size: 3, modified: -4)
        let location = try #require(URL(string: "https://example.com/up/1"))
        try first.write(
            .arrived(file, FinalResponse(statusCode: 200, url: location, body: Data([1, 2]))), of: "1")
        try first.write(uploadLocation: location, of: "1")
        first.close()
        (two.state, one.state) = (
            .ended(.failed(failure)), .arrived(file, FinalResponse(statusCode: 200, url: location, body: Data([1, 2])))
        )
        one.uploadLocation = location
        // Ended tasks come first, in the order of their events, then the others.
        let second = try open()
        expectEqual(second.records, [two, one])
        expectNil(second.damagedJournal)
        let request = try second.records[1].intent.request()
        expectEqual(request.options.retryPolicy, RetryPolicy(maximumRetries: 3, baseDelay: .milliseconds(7)))
        #expect(request.options.priority == .high && request.headerFields[.accept] == "a/b")
        try second.journal.remove("2")
        second.journal.close()
        try expectEqual(open().records, [one])
    }

    @Test func `a journal of the first version is migrated`() throws {
        let record = try record()
        do {
            let old = try DatabaseQueue(path: path)
            try JournalSchema.migrator.migrate(old, upTo: "1")
            try old.write { database in
                #expect(try !database.columns(in: "task").map(\.name).contains("place"))
                try database.execute(
                    sql: """
                        INSERT INTO task (id, intent, handler, context, created, expires, state)
                        VALUES ('a', ?, 'h', 'c', 1, 2, 'waiting')
                        """, arguments: [try record.intent.encoded()])
            }
            try old.close()
        }
        let (journal, records, damagedJournal) = try open()
        #expect(records == [record] && damagedJournal == nil)
        try journal.write(uploadLocation: folder.url("place"), of: "a")
    }

    @Test func `a journal of a later version is refused and stays unchanged`() throws {
        try open().journal.close()
        let newer = try DatabaseQueue(path: path)
        var migrator = JournalSchema.migrator
        migrator.registerMigration("1000") { try $0.execute(sql: "CREATE TABLE more (x)") }
        try migrator.migrate(newer)
        try newer.close()
        for _ in 0..<2 {
            let error = #expect(throws: DurableSessionError.self) { try open() }
            expectEqual(error?.code, .journalIsNewer)
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.contains("damaged") }, [])
        #expect(try DatabaseQueue(path: path).read { try $0.tableExists("more") })
    }

    @Test(arguments: [
        "DROP TABLE event; CREATE VIEW event AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS task FROM r",
        "CREATE TRIGGER t AFTER INSERT ON task BEGIN DELETE FROM event; END", "CREATE VIRTUAL TABLE v USING fts5(a)",
        "CREATE INDEX i ON task (created)", "ALTER TABLE event ADD COLUMN more AS (task || 'x')",
    ])
    func `a journal with another schema is renamed, and none of it runs`(_ sql: String) throws {
        try open().journal.close()
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
        let (journal, records, damagedJournal) = try open()
        #expect(damagedJournal != nil && records.isEmpty)
        try expectEqual(journal.database.read { try Bool.fetchOne($0, sql: "PRAGMA trusted_schema") }, false)
        journal.close()
    }

    @Test(arguments: ["bytes", "head", "page", "row", "table"])
    func `a damaged journal is renamed, its new path is reported, and a new journal begins`(_ damage: String) throws {
        let (first, _, _) = try open()
        for number in 0..<50 { try first.insert(try record("\(number)")) }
        first.close()
        switch damage {
        case "bytes": try Data("no database at all, and long enough to be one".utf8).write(to: URL(fileURLWithPath: path))
        case "head", "page":
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            try file.seek(toOffset: damage == "head" ? 20 : 4096)
            try file.write(contentsOf: Data(repeating: 0xA5, count: damage == "head" ? 40 : 8192))
            try file.close()
        default:
            let queue = try DatabaseQueue(path: path)
            try queue.write {
                try $0.execute(sql: damage == "row" ? "UPDATE task SET intent = x'00' WHERE id = '7'" : "DROP TABLE event")
            }
            try queue.close()
        }
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let (second, records, damagedJournal) = try open()
        let damagedPath = try #require(damagedJournal)
        #expect(damagedPath.hasPrefix(path + ".damaged-"))
        expectEmpty(records)
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: damagedPath)).count, before.count)
        try second.insert(try record("new"))
        second.close()
        let (_, after, again) = try open()
        #expect(after.map(\.id) == ["new"] && again == nil)
    }

    @Test func `only the owner can read the journal`() throws {
        let (journal, _, _) = try open()
        try journal.insert(try record())
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.file(name))
            expectEqual(attributes[.posixPermissions] as? Int, 0o600, "\(name)")
        }
    }
}
