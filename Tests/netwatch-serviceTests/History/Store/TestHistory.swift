import EventLoop
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import netwatch_service

/// A history in a directory of its own, whose time the test sets.
final class TestHistory {
    /// 2026-11-25T12:00:00Z.
    static let noon: Int64 = 1_795_608_000_000
    static let hour: Int64 = 3_600_000
    /// The source of documents.
    static let source = HistorySource(instance: "edge-07", state: "/var/lib/netwatch", isService: true)

    let folder: ScratchDirectory
    let statuses = Locked<[RecordingStatus]>([])
    var settings: HistoryStore.Settings
    var calendar = DayCalendar { _ in 0 }

    init(_ settings: HistoryStore.Settings = .init(directory: "")) throws {
        folder = try ScratchDirectory()
        self.settings = settings
        self.settings.directory = folder.file("state")
        // The time of tests passes faster than the log can be written.
        self.settings.queueLimit = .max
    }

    static func reading(_ time: Int64) -> ClockReading {
        ClockReading(wall: time, monotonic: time - noon + 1_000_000, bootTime: time - noon + 1_000_000)
    }

    func open(at time: Int64 = noon) throws -> (store: HistoryStore, recovered: HistoryStore.Recovered) {
        let statuses = statuses
        return try HistoryStore.open(settings, calendar: calendar, now: Self.reading(time)) { status in
            statuses.withLock { $0.append(status) }
        }
    }

    /// Copies the directory as SIGKILL leaves it at this moment, and returns the history of the copy.
    func killed() throws -> TestHistory {
        let copy = try TestHistory(settings)
        copy.settings = settings
        copy.settings.directory = copy.folder.file("state")
        copy.calendar = calendar
        try FileManager.default.copyItem(atPath: settings.directory, toPath: copy.settings.directory)
        return copy
    }

    /// Opens a new history of one target that is up for five seconds, with the turns in a log.
    func openWithTurns() throws -> HistoryStore {
        let (store, _) = try open()
        _ = try store.numbers("a")
        store.record(Self.noon, .begin(target: 0, .up, at: Self.noon))
        store.record(Self.noon + 5_000)
        store.settle()
        return store
    }

    /// Makes such a history, and its copy as SIGKILL leaves it.
    static func withTurns() throws -> (stopped: TestHistory, killed: TestHistory) {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let killed = try history.killed()
        store.close()
        return (history, killed)
    }

    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: settings.directory).sorted()) ?? [] }

    func path(_ name: String) -> String { "\(settings.directory)/\(name)" }
}

extension HistoryStore {
    /// Waits until the threads have done all that was asked for before.
    func settle() {
        for _ in 0..<2 {
            let done = Completion()
            logThread.run { self.databaseThread.run { done.signal() } }
            done.wait()
        }
    }

    func numbers(_ keys: String...) throws -> [Int] {
        let (done, result) = (Completion(), Locked<Result<[Int], StoreError>>(.success([])))
        register(keys.map { TargetNames(id: nil, text: $0, title: "title of \($0)") }) { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        return try result.withLock { $0 }.get()
    }

    func checkpointAndWait() throws {
        let (done, result) = (Completion(), Locked<Result<Void, StoreError>>(.success(())))
        checkpoint { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        try result.withLock { $0 }.get()
    }

    /// Asks until the query has ended in its time: a busy machine, or a sanitizer, may need longer, above all for the turns of the logs.
    func query<Value: Sendable>(_ body: @escaping @Sendable (HistoryReader) throws -> Value) throws -> Value {
        while true {
            do { return try queryOnce(body) } catch let error as StoreError where error.code == .timedOut { continue }
        }
    }

    /// Asks once.
    func queryOnce<Value: Sendable>(_ body: @escaping @Sendable (HistoryReader) throws -> Value) throws -> Value {
        let (done, result) = (Completion(), Locked<Result<Value, StoreError>?>(nil))
        read(body) { outcome in
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        return try #require(result.withLock { $0 }).get()
    }

    /// Records a turn.
    func record(_ time: Int64, _ events: HistoryEvent...) { record(HistoryTurn(TestHistory.reading(time), events)) }
}
