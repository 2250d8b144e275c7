import EventLoop
import Expectations
import Foundation
import Glibc
import Pacing
import Reachability
import Testing

@testable import netwatch_service

/// Files that another program removes, replaces, truncates or overwrites while the service runs.
@Suite(.timeLimit(.minutes(5))) struct HistoryRemovalTests {
    private let noon = TestHistory.noon

    private static let incident = Incident(
        id: "one", scope: .server, subject: .init(.target, "a"), cause: Cause(.tcp, .refused, detail: "refused"),
        from: Date(timeIntervalSince1970: 1_795_608_001))

    @Test(arguments: ["removed", "truncated", "overwritten"])
    func `a log that is lost is replaced by the next one, and the time since its start is a gap`(loss: String) throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let log = history.path("recent-1.dat")
        try #require(history.names.contains("recent-1.dat"), "\(history.names)")
        // The reader has the turns of the log before it is lost.
        try expectEqual(store.query { try $0.summaries(0..<Int64.max) }[0]?.times[.up], 5_000)
        switch loss {
        case "removed": unlink(log)
        case "truncated": truncate(log, 0)
        default: try Self.overwrite(log, at: 0)
        }
        store.record(noon + 6_000)
        store.settle()
        expectEqual(store.status.reason, "\(log): another program has \(loss) the file")
        // The next attempt comes after the interval.
        store.record(noon + 8_000)
        store.settle()
        #expect(!store.status.isRecording)
        for time in [noon + 12_000, noon + 13_000] { store.record(time, .change(target: 0, .degraded, at: time)) }
        store.settle()
        #expect(store.status.isRecording && history.names.contains("recent-2.dat"))
        expectEqual(history.statuses.withLock { $0.map(\.isRecording) }, [false, true])
        try store.checkpointAndWait()
        let gap = HistoryGap(period: noon..<noon + 8_000, reason: .notRecorded)
        try expectEqual(store.query { try $0.gaps(0..<Int64.max) }, [gap])
        // The target began in the lost log. It is up from the end of the gap on.
        let times = try store.query { try $0.summaries(0..<Int64.max) }[0]?.times
        #expect(times?[.up] == 4_000 && times?[.degraded] == 1_000 && times?[.unknown] == 0)
        store.close()
        let (second, recovered) = try history.open(at: noon + 14_000)
        #expect(recovered.notes.isEmpty && recovered.lastAlive?.wall == noon + 13_000)
        second.close()
    }

    @Test func `a log whose last turn was overwritten is lost`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let log = history.path("recent-1.dat")
        let written = try [UInt8](Data(contentsOf: URL(fileURLWithPath: log)))
        try Self.overwrite(log, at: try #require(written.lastIndex { $0 != 0 }))
        store.record(noon + 6_000)
        store.settle()
        expectEqual(store.status.reason, "\(log): another program has overwritten the file")
        #expect(history.names.contains { $0.hasPrefix("recent-1.dat.damaged-") } && !history.names.contains("recent-1.dat"))
        store.close()
    }

    /// Writes bytes into a file that stays.
    private static func overwrite(_ path: String, at place: Int) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(place))
        try file.write(contentsOf: Data("other".utf8))
        try file.close()
    }

    @Test func `a start without the write-ahead log of a killed service says so`() throws {
        let killed = try TestHistory.withTurns().killed
        unlink(killed.path("history.sqlite-wal"))
        let (store, recovered) = try killed.open(at: noon + 14_000)
        expectEqual(
            recovered.notes,
            [
                "\(killed.path("history.sqlite"))-wal: missing after a stop that was not regular; the last changes of the history may "
                    + "be missing"
            ])
        store.close()
        let (second, next) = try killed.open(at: noon + 15_000)
        expectEmpty(next.notes)
        second.close()
    }

    @Test(arguments: ["removed", "replaced", "renamed"])
    func `without its database, no incident counts as recorded`(loss: String) throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let database = history.path("history.sqlite")
        let isRecorded = Locked(false)
        try FileManager.default.moveItem(atPath: database, toPath: database + ".old")
        if loss == "replaced" { try FileManager.default.copyItem(atPath: database + ".old", toPath: database) }
        if loss == "removed" { unlink(database + ".old") }
        store.record(Self.incident) { isRecorded.withLock { $0 = true } }
        store.settle()
        #expect(!isRecorded.withLock { $0 })
        expectEqual(store.status.reason, "\(database): the file was removed or replaced; restart the service")
        #expect(throws: StoreError.self) { try store.checkpointAndWait() }
        if loss == "renamed" {
            try FileManager.default.moveItem(atPath: database + ".old", toPath: database)
            store.record(noon + 20_000)
            store.settle()
            #expect(store.status.isRecording && isRecorded.withLock { $0 })
        }
        store.close()
    }

    @Test func `a checkpoint that succeeds writes the incidents that have waited`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let database = history.path("history.sqlite")
        let isRecorded = Locked(false)
        try FileManager.default.moveItem(atPath: database, toPath: database + ".old")
        store.record(Self.incident) { isRecorded.withLock { $0 = true } }
        store.settle()
        try FileManager.default.moveItem(atPath: database + ".old", toPath: database)
        #expect(!isRecorded.withLock { $0 } && !store.status.isRecording)
        try store.checkpointAndWait()
        #expect(isRecorded.withLock { $0 } && store.status.isRecording)
        try expectEqual(store.query { try $0.incidents(0..<Int64.max) }.elements.map(\.id), ["one"])
        store.close()
    }

    @Test(arguments: ["history.sqlite", "history.sqlite-wal", "history.sqlite-shm"])
    func `a removed file of the database is noticed with the next turn`(name: String) throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        try #require(history.names.contains(name), "\(history.names)")
        unlink(history.path(name))
        for second in 6...20 as ClosedRange<Int64> { store.record(noon + second * 1_000) }
        store.settle()
        expectEqual(store.status.reason, "\(history.path(name)): the file was removed or replaced; restart the service")
        store.close()
    }

    @Test func `a truncated database is noticed with the next turn`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        truncate(history.path("history.sqlite"), 0)
        store.record(noon + 6_000)
        store.settle()
        expectEqual(store.status.reason, "\(history.path("history.sqlite")): the file was truncated; restart the service")
        store.close()
    }

    @Test func `without its directory nothing is recorded, and the store closes`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        try FileManager.default.removeItem(atPath: history.settings.directory)
        let isRecorded = Locked(false)
        store.record(Self.incident) { isRecorded.withLock { $0 = true } }
        store.record(noon + 6_000)
        store.settle()
        #expect(!store.status.isRecording && !isRecorded.withLock { $0 })
        store.record(noon + 20_000)
        store.settle()
        #expect(!store.status.isRecording && noon + 5_000...noon + 6_000 ~= store.status.since)
        store.close()
        #expect(access(history.settings.directory, F_OK) != 0)
    }
}
