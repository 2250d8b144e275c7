import EventLoop
import Glibc
import Reachability

/// The history of all targets on the disk: a database, and beside it the log of the turns since the last checkpoint.
///
/// ```
/// keeper ─ turns ──→ TurnQueue ─→ TurnRecorder: recent-N.dat ─ checkpoint ─→ LedgerBook ─→ HistoryDatabase: history.sqlite
///        ─ incidents, path events ───────────────────────────────────────────────────────→
/// pages, documents ← HistoryReader (a connection of its own) ←──────────────────────────────
/// ```
///
/// Methods that take a completion and ``record(_:)`` do not block. Three threads do the work: one writes the logs, one writes to the
/// database, and one runs queries. A turn is in the log within milliseconds, even while the database waits for a slow disk, and SIGKILL
/// loses none that is in the log. Completions run on these threads.
final class HistoryStore: Sendable {
    /// The settings.
    struct Settings: Hashable, Sendable {
        /// The state directory. It is created if it is missing.
        var directory: String
        var retention = Retention()
        /// The maximum time of turns that wait for the log, in milliseconds. Beyond it, the samples of the oldest turns are dropped.
        var queueLimit: Int64 = 60_000
        /// The maximum size of the log in bytes. Beyond it nothing is recorded until a checkpoint succeeds.
        var logLimit = 256 << 20
        /// The time between two attempts after an error of the disk, in milliseconds.
        var retryInterval: Int64 = 5_000
    }

    /// The names of a target.
    struct TargetNames: Hashable, Sendable {
        /// The stable identifier; `nil` if the history belongs to the text.
        var id: String?
        /// The text of the target, as the user wrote it.
        var text: String
        /// The name for people.
        var title: String

        /// The identity of the target.
        var key: String { id ?? text }
    }

    /// A target that the history knows.
    struct Target: Hashable, Sendable {
        /// The number in turns and results. Numbers are small, begin at 0 and are never reused.
        var number: Int
        var names: TargetNames

        /// The identity of the target: its identifier, or its text.
        var key: String { names.key }
    }

    /// The state of the history when it was opened. Turns that no checkpoint had moved are in the database and in the ledgers.
    struct Recovered: Sendable {
        /// All targets of the history, also those that are no longer configured, in the order of their numbers.
        var targets: [Target]
        /// The ledgers by the number of the target, at their last accounted time.
        var ledgers: [Int: TargetLedger]
        /// The time of the last turn; `nil` for a new history. The time until now is a gap, which the keeper records.
        var lastAlive: ClockReading?
        /// Whether the machine has booted since ``lastAlive``. Otherwise the monotonic clocks can be compared.
        var hasBooted: Bool
        /// The incidents that were open at ``lastAlive``. The history has closed them at that time.
        var interrupted: [Incident]
        /// Facts for the log of the service, a line each: a damaged file was set aside, damaged blocks were left out.
        var notes: [String]
    }

    let settings: Locked<Settings>
    let directory: StateDirectory
    let database: HistoryDatabase
    let recorder: TurnRecorder
    let condition: RecordingCondition
    let calendar: Locked<DayCalendar>
    let incidents = Locked(IncidentQueue())
    let reader: Locked<HistoryReader?>
    private let lock: LockFile
    private let queue: Locked<TurnQueue>
    private let closing = Locked(false)
    let logThread: Worker
    let databaseThread: Worker
    let queryThread: Worker

    private init(
        _ settings: Settings, _ directory: StateDirectory, _ lock: LockFile, _ database: HistoryDatabase,
        _ recorder: TurnRecorder,
        _ calendar: DayCalendar, at now: ClockReading, onStatus: @escaping @Sendable (RecordingStatus) -> Void
    ) throws(StoreError) {
        (self.settings, self.directory, self.lock, self.database) = (Locked(settings), directory, lock, database)
        (self.recorder, self.calendar) = (recorder, Locked(calendar))
        reader = Locked(nil)
        condition = RecordingCondition(since: now.wall, retryInterval: settings.retryInterval, onStatus)
        queue = Locked(TurnQueue(limit: settings.queueLimit, start: now.wall))
        do {
            logThread = try Worker(name: "history log")
            databaseThread = try Worker(name: "history")
            queryThread = try Worker(name: "history query")
        } catch { throw StoreError(.refused, "a thread cannot be started: \(error)") }
    }

    /// Opens the history, or creates it. The turns of logs are moved into the database. The method blocks.
    ///
    /// - Parameters:
    ///   - settings: the directory and the limits.
    ///   - calendar: the days of the configured time zone.
    ///   - now: the present time; the wall clock as it is.
    ///   - onStatus: called when recording fails, and when it works again.
    /// - Returns: the store, and the state of the history.
    /// - Throws: ``StoreError`` with ``StoreError/Code/inUse`` if another process has the directory open, and with
    ///   ``StoreError/Code/newer`` if a later version has written the history.
    static func open(
        _ settings: Settings, calendar: DayCalendar, now: ClockReading, onStatus: @escaping @Sendable (RecordingStatus) -> Void
    ) throws(StoreError) -> (store: HistoryStore, recovered: Recovered) {
        let directory = StateDirectory(path: settings.directory)
        try directory.create()
        let lock = try LockFile(directory)
        let boot = BootIdentifier.current
        var (queue, notes) = try HistoryFile.open(directory, boot: boot, time: now.wall)
        let database = HistoryDatabase(queue, path: directory.database)
        do throws(StoreError) {
            let first = UInt64(clamping: try database.number("generation") ?? 0)
            let lastBoot = try database.text("boot_id")
            let generations = directory.generations
            let next = max(first, (generations.last ?? 0) + 1)
            let logs = generations.filter { $0 >= first }
            let result = try database.checkpoint(logs.map(directory.log), next: next, calendar: calendar, stops: true)
            for generation in generations { unlink(directory.log(generation)) }
            if result.damaged > 0 { notes.append("\(directory.database): \(result.damaged) damaged values were left out") }
            var lastAlive = result.time
            if lastAlive == nil, let wall = try database.number("last_alive") {
                lastAlive = ClockReading(
                    wall: wall, monotonic: try database.number("last_monotonic") ?? 0,
                    bootTime: try database.number("last_boottime") ?? 0)
            }
            let interrupted = try database.closeIncidents(at: lastAlive?.wall ?? now.wall)
            let identifier = UInt32(truncatingIfNeeded: try database.number("id") ?? 0)
            let start = lastAlive.map {
                ClockReading(wall: max($0.wall, now.wall), monotonic: now.monotonic, bootTime: now.bootTime)
            }
            let recorder = TurnRecorder(directory, database: identifier, generation: next, after: start ?? now, settings)
            let store = try HistoryStore(settings, directory, lock, database, recorder, calendar, at: now, onStatus: onStatus)
            var ledgers: [Int: TargetLedger] = [:]
            for (target, entry) in result.entries.enumerated() { if let entry { ledgers[target] = entry.ledger } }
            directory.sync()
            let recovered = Recovered(
                targets: try database.targets(), ledgers: ledgers, lastAlive: lastAlive,
                hasBooted: (result.boot ?? lastBoot ?? boot) != boot, interrupted: interrupted, notes: notes)
            return (store, recovered)
        } catch {
            database.close()
            lock.unlock()
            throw error
        }
    }

    /// The present state of the recording.
    var status: RecordingStatus { condition.status }
    /// The number of samples that were lost, because the disk was full or too slow.
    var droppedSamples: Int { queue.withLock { $0.droppedSamples } + recorder.lostSamples }

    // MARK: Recording

    /// Records a turn. The keeper records one at least every 2 seconds, if only as a sign of life.
    ///
    /// If the log is slower than 60 seconds (``Settings/queueLimit``), the samples of the oldest turns are dropped and counted, and a gap
    /// replaces them.
    func record(_ turn: HistoryTurn) {
        guard !isClosed else { return }
        let mustWake = queue.withLock { queue in
            defer { queue.append(turn) }
            return queue.isEmpty
        }
        reader.withLock { $0 }?.interruptOverdueQuery()
        if mustWake { logThread.run { self.writeTurns() } }
    }

    /// Writes the waiting turns. Only the thread of the logs calls it.
    func writeTurns() {
        let (dropped, turns) = queue.withLock { $0.takeAll() }
        if let dropped { recorder.record(dropped) }
        for turn in turns { recorder.record(turn) }
        guard let last = turns.last else { return }
        condition.set(.log, recorder.failure, at: last.time)
        if condition.isRetryDue(at: last.time) { databaseThread.run { self.retry() } }
    }

    // MARK: Stopping

    /// Whether ``close()`` was called.
    var isClosed: Bool { closing.withLock { $0 } }
    /// The error of a method that is called after ``close()``.
    static let closedError = StoreError(.closed, "the history is closed")

    /// Writes everything to the disk and closes the files. The method blocks. No method has an effect after it.
    func close() {
        guard
            !closing.withLock({ isClosed in
                defer { isClosed = true }
                return isClosed
            })
        else { return }
        let done = Completion()
        logThread.run {
            self.writeTurns()
            let next = self.recorder.complete(synchronizing: true)
            self.databaseThread.run {
                self.writeIncidents()
                self.writePathEvents()
                self.moveLogs(before: next, isClean: true)
                self.queryThread.run {
                    self.reader.withLock { $0 }?.close()
                    self.databaseThread.run {
                        self.database.close()
                        self.lock.unlock()
                        done.signal()
                    }
                }
            }
        }
        done.wait()
    }
}
