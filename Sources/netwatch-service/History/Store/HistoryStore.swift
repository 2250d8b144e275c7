import EventLoop
import Glibc
import Reachability
import Records

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
        /// The name of the zone of the days, which readers of the files use; `nil` to keep the one that is there.
        var timeZone: String?
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
        /// The name for people: ``text`` for a target without one.
        var title: String
        var group: String?
        var labels: [String: String] = [:]

        /// The names of the target's records.
        var identity: TargetIdentity {
            TargetIdentity(id: id, name: title == text ? nil : title, group: group, labels: labels)
        }

        /// The key of the target's history.
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

    /// The state of the history when it was opened. Turns that no checkpoint had moved are in the ledgers, and in the database unless it
    /// could not be written.
    struct Recovered: Sendable {
        /// All targets of the history, also those that are no longer configured, in the order of their numbers.
        var targets: [Target]
        /// The ledgers by the number of the target, at their last accounted time.
        var ledgers: [Int: TargetLedger]
        /// The time of the last turn; `nil` for a new history. The time until now is a gap, which the keeper records.
        var lastAlive: ClockReading?
        /// The time until which the service ran after ``lastAlive`` without recording, as on a full disk, in milliseconds since 1970; `nil` if it
        /// did not.
        var unrecordedUntil: Int64?
        /// Whether the machine has booted since ``lastAlive``. Otherwise the monotonic clocks can be compared.
        var hasBooted: Bool
        /// The incidents that were open at ``lastAlive``, the oldest first. They continue.
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
    let retentionClock: Locked<RetentionClock>
    /// The rows that the database did not take. Only the thread of the database uses it.
    let pending: Locked<PendingRows>
    let reader: Locked<HistoryReader?>
    let lock: StateLock
    private let queue: Locked<TurnQueue>
    private let closing = Locked(false)
    let logThread: Worker
    let databaseThread: Worker
    let queryThread: Worker

    /// Starts the threads. ``open(_:calendar:now:onStatus:)`` calls it.
    init(
        _ settings: Settings, _ directory: StateDirectory, _ lock: StateLock, _ database: HistoryDatabase,
        _ recorder: TurnRecorder, _ pending: PendingRows, _ calendar: DayCalendar, at now: ClockReading, last: ClockReading?,
        onStatus: @escaping @Sendable (RecordingStatus) -> Void
    ) throws(StoreError) {
        (self.settings, self.directory, self.lock, self.database) = (Locked(settings), directory, lock, database)
        (self.recorder, self.calendar, self.pending) = (recorder, Locked(calendar), Locked(pending))
        reader = Locked(nil)
        retentionClock = Locked(RetentionClock(min(last?.wall ?? now.wall, now.wall), at: now.monotonic))
        condition = RecordingCondition(since: now.wall, retryInterval: settings.retryInterval, onStatus)
        queue = Locked(TurnQueue(limit: settings.queueLimit, start: now.wall))
        do {
            logThread = try Worker(name: "history log")
            databaseThread = try Worker(name: "history")
            queryThread = try Worker(name: "history query")
        } catch { throw StoreError(.refused, "a thread cannot be started: \(error)") }
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
    ///
    /// - Parameters:
    ///   - turn: the turn.
    ///   - lag: the time by which the wall clock is behind that of the turn, in milliseconds.
    func record(_ turn: HistoryTurn, lag: Int64 = 0) {
        guard !isClosed else { return }
        condition.set(lag: lag)
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
        let generation = recorder.generation
        for turn in turns { recorder.record(turn) }
        // Queries forget the turns of a log that another program has removed.
        if recorder.generation != generation { queryThread.run { self.reader.withLock { $0 }?.releaseTurns() } }
        guard let last = turns.last else { return }
        condition.set(.log, recorder.failure, at: last.time)
        if !condition.hasFailed(.database), let loss = database.loss { condition.set(.database, loss) }
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
