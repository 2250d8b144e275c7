import Expectations
import Foundation
import GRDB
import Glibc
import NetworkLab
import Testing

@testable import netwatch_service

/// Files in the state directory that another program has made.
@Suite(.timeLimit(.minutes(20))) struct StateFileTests {
    private let noon = TestHistory.noon

    /// Puts a file of another kind at a path.
    private func make(_ kind: String, at path: String, for history: TestHistory) throws {
        switch kind {
        case "a FIFO": try #require(mkfifo(path, 0o600) == 0)
        case "a directory": try #require(mkdir(path, 0o700) == 0)
        default: try #require(symlink(history.folder.file("victim"), path) == 0)
        }
    }

    @Test(arguments: ["a FIFO", "a symbolic link", "a directory"])
    func `a log that is no file is set aside and named, and readers leave it out`(kind: String) throws {
        let history = try TestHistory.withTurns().killed
        try make(kind, at: history.path("recent-11.dat"), for: history)
        let reader = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        try expectEqual(reader.lastAlive(), noon + 5_000)
        reader.close()
        let (store, recovered) = try history.open(at: noon + 10_000)
        #expect(recovered.lastAlive?.wall == noon + 5_000 && recovered.notes.count == 1)
        #expect(
            recovered.notes.first?.contains(kind) == true && recovered.notes.first?.contains("recent-11.dat.damaged-") == true)
        #expect(history.names.contains { $0.hasPrefix("recent-11.dat.damaged-") })
        store.close()
        #expect(!FileManager.default.fileExists(atPath: history.folder.file("victim")))
        try expectEmpty(history.open(at: noon + 20_000).recovered.notes)
    }

    @Test(arguments: ["", "-wal", "-shm"], ["a FIFO", "a symbolic link"])
    func `a database that is no file is refused, and nothing behind a link is created`(suffix: String, kind: String) throws {
        let history = try TestHistory()
        try history.open().store.close()
        let path = history.path("history.sqlite\(suffix)")
        unlink(path)
        try make(kind, at: path, for: history)
        let refused = #expect(throws: StoreError.self) { _ = try history.open() }
        #expect(refused?.code == .refused && refused?.reason.contains(kind) == true)
        let unread = #expect(throws: StoreError.self) {
            _ = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        }
        #expect(unread?.code == .missing && unread?.reason.contains(kind) == true)
        #expect(!FileManager.default.fileExists(atPath: history.folder.file("victim")))
    }

    @Test func `a second service is refused`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        let reason =
            "\(history.settings.directory): process \(getpid()) keeps its history here; stop it, or choose another --state"
        #expect(throws: StoreError(.inUse, reason)) { _ = try history.open() }
        store.close()
        try history.open().store.close()
    }

    @Test func `a removed lock file is created and locked again, and the recording continues`() throws {
        let history = try TestHistory()
        let (store, _) = try history.open()
        store.record(noon)
        store.settle()
        unlink(history.path("lock"))
        store.record(noon + 2_000)
        store.settle()
        expectNil(store.status.reason)
        let error = #expect(throws: StoreError.self) { _ = try history.open() }
        expectEqual(error?.code, .inUse)
        store.close()
    }

    @Test func `nothing is written after another service could have locked the directory`() throws {
        let history = try TestHistory()
        let directory = StateDirectory(path: history.settings.directory)
        for isRunning in [true, false] {
            let (store, _) = try history.open()
            store.record(noon)
            store.settle()
            unlink(history.path("lock"))
            let other = try StateLock(directory)
            if !isRunning { other.unlock() }
            store.record(noon + 2_000)
            store.settle()
            expectEqual(store.status.reason, "\(history.path("lock")): the file was replaced; restart the service")
            #expect(throws: StoreError.self) { try store.database.write { _ in } }
            // Also after the other service has ended: it may have changed the history.
            other.unlock()
            store.record(noon + 60_000)
            store.settle()
            #expect(store.status.reason?.hasSuffix("restart the service") == true)
            store.close()
        }
        try history.open().store.close()
    }

    @Test(.requiresOtherUsers)
    func `another user can lock neither the directory's lock nor stop the service by locking the directory`()
        throws
    {
        let history = try TestHistory()
        mkdir(history.settings.directory, 0o755)
        chmod(history.folder.path, 0o755)
        try Data().write(to: URL(fileURLWithPath: history.path("lock")))
        chmod(history.path("lock"), 0o644)
        let other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "flock", "--nonblock"]
        // The lock lasts as long as its process, which waits for the end of its standard input.
        let program = try Program(other + [history.settings.directory, "sh", "-c", "echo locked; read end"], input: .pipe)
        try expectEqual(program.nextLine(), "locked")
        let (store, _) = try history.open()
        store.close()
        let later = try Program(other + [history.path("lock"), "true"])
        try #expect(later.wait() != 0)
        #expect(later.standardError.contains("Permission denied"), "\(later.standardError)")
        try program.signal(SIGKILL)
    }

    @Test func `a lock that is a FIFO is refused`() throws {
        let history = try TestHistory()
        try history.open().store.close()
        unlink(history.path("lock"))
        try make("a FIFO", at: history.path("lock"), for: history)
        #expect(throws: StoreError(.refused, "\(history.path("lock")): not a file; remove it, or choose another --state")) {
            _ = try history.open()
        }
    }

    @Test(arguments: [0o1777, 0o775, 0o702] as [mode_t])
    func `a directory that other users may write to is refused, and nothing is created there`(mode: mode_t) throws {
        let history = try TestHistory()
        mkdir(history.settings.directory, 0o700)
        chmod(history.settings.directory, mode)
        let error = #expect(throws: StoreError.self) { _ = try history.open() }
        #expect(error?.code == .refused && error?.reason.contains("other users") == true)
        expectEmpty(history.names)
    }

    @Test(.requiresOtherUsers) func `a directory of another user is refused, also behind a symbolic link`() throws {
        let history = try TestHistory()
        let directory = history.folder.file("other")
        mkdir(directory, 0o755)
        try #require(chown(directory, 1, 1) == 0 && symlink(directory, history.settings.directory) == 0)
        let error = #expect(throws: StoreError.self) { _ = try history.open() }
        #expect(error?.code == .refused && error?.reason.contains("belongs to user 1") == true)
        expectEmpty(history.names)
        try #require(chown(directory, geteuid(), getegid()) == 0)
        try history.open().store.close()
    }

    @Test func `other users may read no file of the history, also one of an earlier version`() throws {
        let history = try TestHistory()
        mkdir(history.settings.directory, 0o755)
        func modes(_ history: TestHistory) throws -> Set<Int> {
            Set(
                try history.names.map { name in
                    try #require(try FileManager.default.attributesOfItem(atPath: history.path(name))[.posixPermissions] as? Int)
                })
        }
        for time in [noon, noon + 60_000] {
            let (store, _) = try history.open(at: time)
            store.record(time)
            store.settle()
            #expect(try modes(history) == [0o600] && history.names.count >= 5, "\(history.names)")
            store.close()
            chmod(history.path("history.sqlite"), 0o644)
        }
        // As after a kill: all files have the permissions of an earlier version.
        let killed = try TestHistory.withTurns().killed
        for name in killed.names where name != "lock" { chmod(killed.path(name), 0o644) }
        let (store, _) = try killed.open()
        try expectEqual(modes(killed), [0o600])
        store.close()
    }

    // MARK: Damage

    @Test func `a log of other bytes is set aside and named, and an empty or torn one is not`() throws {
        let history = try TestHistory.withTurns().killed
        let log = try #require(history.names.first { $0.hasPrefix("recent-") })
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: history.path(log)))
        // The last turn is torn.
        try file.seek(toOffset: UInt64(TurnLog.headerSize + 12))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 2_000))
        try file.close()
        try Data(repeating: 0x5A, count: 4_000).write(to: URL(fileURLWithPath: history.path("recent-11.dat")))
        try Data("short".utf8).write(to: URL(fileURLWithPath: history.path("recent-12.dat")))
        try Data().write(to: URL(fileURLWithPath: history.path("recent-13.dat")))
        try Data(count: 4_096).write(to: URL(fileURLWithPath: history.path("recent-14.dat")))
        let (store, recovered) = try history.open(at: noon + 10_000)
        expectEqual(recovered.notes.count, 2, "\(recovered.notes)")
        for (note, name) in zip(recovered.notes, ["recent-11.dat", "recent-12.dat"]) {
            #expect(note.contains("\(name): damaged") && note.contains("\(name).damaged-"))
        }
        expectEqual(history.names.filter { $0.hasPrefix("recent-") }.count, 2)
        store.close()
    }

    @Test func `a write-ahead log of other bytes is set aside and named, and one of SQLite is not`() throws {
        let history = try TestHistory.withTurns().killed
        #expect(StateFile(history.path("history.sqlite-wal")).size > 0)
        #expect(try !StateFile(history.path("history.sqlite-wal")).isDamagedWriteAheadLog())
        let (store, intact) = try history.open(at: noon + 10_000)
        #expect(intact.notes.isEmpty && intact.targets.map(\.key) == ["a"])
        store.close()
        try Data(repeating: 0x5A, count: 40_000).write(to: URL(fileURLWithPath: history.path("history.sqlite-wal")))
        let (second, recovered) = try history.open(at: noon + 20_000)
        #expect(recovered.targets.map(\.key) == ["a"] && recovered.notes.count == 1)
        #expect(recovered.notes.first?.contains("history.sqlite-wal: damaged") == true)
        let aside = try #require(history.names.first { $0.hasPrefix("history.sqlite-wal.damaged-") })
        expectEqual(StateFile(history.path(aside)).size, 40_000)
        second.close()
    }

    @Test func `an empty database is reported as no history`() throws {
        let history = try TestHistory()
        mkdir(history.settings.directory, 0o700)
        try Data().write(to: URL(fileURLWithPath: history.path("history.sqlite")))
        let error = #expect(throws: StoreError.self) {
            _ = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        }
        #expect(error?.code == .missing && error?.reason.contains("empty") == true)
    }

    @Test func `an empty database is named, and a new history begins`() throws {
        let history = try TestHistory()
        mkdir(history.settings.directory, 0o700)
        try Data().write(to: URL(fileURLWithPath: history.path("history.sqlite")))
        let (store, recovered) = try history.open()
        expectEqual(recovered.notes, ["\(history.path("history.sqlite")): empty; a new history begins"])
        store.close()
        try expectEqual(history.open().recovered.notes, [])
    }

    @Test func `the history has the zone of the last service`() throws {
        let history = try TestHistory()
        let directory = StateDirectory(path: history.settings.directory)
        try history.open().store.close()
        try expectNil(HistoryReader.timeZone(of: directory))
        for zone in ["Europe/Berlin", "Asia/Kathmandu"] {
            history.settings.timeZone = zone
            try history.open().store.close()
            try expectEqual(HistoryReader.timeZone(of: directory), zone)
        }
    }
}
