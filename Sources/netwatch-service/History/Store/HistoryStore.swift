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
        /// What is known of jobs that report in.
        var heartbeats: [HeartbeatMemories.Job: HeartbeatMemory] = [:]
        /// Whether the machine has booted since ``lastAlive``. Otherwise the monotonic clocks can be compared.
        var hasBooted: Bool
        /// The incidents that were open at ``lastAlive``, the oldest first. They continue.
        var interrupted: [Incident]
        /// Facts for the log of the service, a line each: a damaged file was set aside, damaged blocks were left out.
        var notes: [String]
    }

    private let settings: Locked<Settings>
    private let directory: StateDirectory
    let database: HistoryDatabase
    let recorder: TurnRecorder
    private let condition: RecordingCondition
    private let calendar: Locked<DayCalendar>
    private let incidents = Locked(IncidentQueue())
    private let retentionClock: Locked<RetentionClock>
    /// The rows that the database did not take. Only the thread of the database uses it.
    let pending: Locked<PendingRows>
    private let reader: Locked<HistoryReader?>
    private let lock: StateLock
    private let queue: Locked<TurnQueue>
    private let closing = Locked(false)
    /// Writes the logs. Tests wait for the work of both.
    let logThread: Worker
    let databaseThread: Worker
    private let queryThread: Worker

    /// Starts the threads. ``open(_:calendar:now:onStatus:)`` calls it.
    private init(
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
    private func writeTurns() {
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
    private var isClosed: Bool { closing.withLock { $0 } }
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

/// The opening of the history. A service with a history starts in any case: on a full disk it continues from what it can read.
extension HistoryStore {
    /// The state of a history that is opened.
    private struct Start {
        var recovered: Recovered
        /// The identifier of the database.
        var identifier: UInt32
        /// The number of the first log.
        var next: UInt64
        /// The sizes of the logs that could not be moved into the database.
        var kept: [UInt64: Int] = [:]
        var pending = PendingRows()
    }

    /// Opens the history, or creates it. The turns of logs are moved into the database. The method blocks.
    ///
    /// If a database that exists cannot be written, the logs are kept, and ``status`` has the reason. Recording begins when the database
    /// and the log can be written; the time until then is a gap.
    ///
    /// - Parameters:
    ///   - settings: the directory and the limits.
    ///   - calendar: the days of the configured time zone.
    ///   - now: the present time; the wall clock as it is.
    ///   - onStatus: called when recording fails, and when it works again.
    /// - Returns: the store, and the state of the history.
    /// - Throws: ``StoreError`` with ``StoreError/Code/inUse`` if another process has the directory open, with
    ///   ``StoreError/Code/newer`` if a later version has written the history, and with ``StoreError/Code/refused`` if other users may
    ///   write to the directory, or a file is no regular one.
    static func open(
        _ settings: Settings, calendar: DayCalendar, now: ClockReading, onStatus: @escaping @Sendable (RecordingStatus) -> Void
    ) throws(StoreError) -> (store: HistoryStore, recovered: Recovered) {
        let directory = StateDirectory(path: settings.directory)
        try directory.create()
        try directory.requireOwnership()
        let lock = try StateLock(directory)
        let database = HistoryDatabase(directory, lock)
        do throws(StoreError) {
            var notes: [String] = []
            var (start, failure): (Start, StoreError?)
            do throws(StoreError) {
                notes = try directory.setAsideDamagedLogs(time: now.wall)
                notes += try database.open(boot: BootIdentifier.current, time: now.wall)
                (start, failure) = (try recover(database, directory, calendar, settings, at: now), nil)
            } catch {
                // A new history has nothing from which the service could continue.
                guard [.inputOutput, .refused].contains(error.code),
                    let readable = try? read(directory, calendar, settings, at: now)
                else { throw error }
                (start, failure) = (readable, error)
            }
            start.recovered.notes = notes + start.recovered.notes
            if let last = start.recovered.lastAlive?.wall, let life = directory.lastLife, last < life, life <= now.wall {
                start.recovered.unrecordedUntil = life
            }
            let reading = ClockReading(
                wall: max(start.recovered.lastAlive?.wall ?? now.wall, now.wall), monotonic: now.monotonic, bootTime: now.bootTime
            )
            let recorder = TurnRecorder(
                directory, lock, database: start.identifier, generation: start.next, after: reading, kept: start.kept, settings)
            let store = try HistoryStore(
                settings, directory, lock, database, recorder, start.pending, calendar, at: now,
                last: start.recovered.lastAlive, onStatus: onStatus)
            if let failure {
                store.incidents.withLock { $0.owesCheckpoint = true }
                store.condition.set(.database, failure)
            }
            return (store, start.recovered)
        } catch {
            database.close()
            lock.unlock()
            throw error
        }
    }

    /// Moves the logs into the database, and closes the states that the end of the service left open. Incidents stay open.
    private static func recover(
        _ database: HistoryDatabase, _ directory: StateDirectory, _ calendar: DayCalendar, _ settings: Settings,
        at now: ClockReading
    ) throws(StoreError) -> Start {
        let boot = BootIdentifier.current
        let first = UInt64(clamping: try database.number("generation") ?? 0)
        let lastBoot = try database.text("boot_id")
        let generations = directory.generations
        let next = max(first, (generations.last ?? 0) + 1)
        let logs = generations.filter { $0 >= first }
        let result = try database.checkpoint(logs.map(directory.log), next: next, calendar: calendar, stops: true)
        for generation in generations { unlink(directory.log(generation)) }
        database.mergeWriteAheadLog()
        var lastAlive = result.time
        if lastAlive == nil { lastAlive = try database.read(ClockReading.init(lastIn:)) }
        let interrupted = try database.read(HistoryDatabase.openIncidents)
        if let zone = settings.timeZone, try database.text("time_zone") != zone {
            try database.write { try HistoryDatabase.set("time_zone", zone, $0) }
        }
        var recovered = Recovered(
            targets: try database.targets(), ledgers: ledgers(result.entries), lastAlive: lastAlive,
            hasBooted: (result.boot ?? lastBoot ?? boot) != boot, interrupted: interrupted, notes: [])
        recovered.heartbeats = try database.read(HeartbeatRows.read)
        if result.damaged > 0 { recovered.notes = ["\(database.path): \(result.damaged) damaged values were left out"] }
        directory.sync()
        return Start(
            recovered: recovered, identifier: UInt32(truncatingIfNeeded: try database.number("id") ?? 0), next: next)
    }

    /// Reads the history without writing to it: the database, and the logs that it does not have.
    private static func read(
        _ directory: StateDirectory, _ calendar: DayCalendar, _ settings: Settings, at now: ClockReading
    ) throws(StoreError) -> Start {
        let reader = try HistoryReader(following: directory, calendar: calendar)
        defer { reader.close() }
        return try reader.run(until: nil) { reader in
            let book = reader.overlay
            let generations = directory.generations
            let boot = BootIdentifier.current
            return try reader.read { database in
                let first = try TurnFollower.generation(database)
                let lastAlive = try book?.time ?? ClockReading(lastIn: database)
                var lastBoot = try HistoryDatabase.text("boot_id", database)
                if let last = generations.last, let log = try TurnLogReader(directory.log(last)) { lastBoot = log.header.boot }
                // A checkpoint has these already, and removing them needs no room.
                for generation in generations where generation < first { unlink(directory.log(generation)) }
                let kept = generations.filter { $0 >= first }.map { ($0, StateFile(directory.log($0)).size) }
                let entries = book?.entries ?? []
                let heartbeats = try HeartbeatRows.read(database)
                return Start(
                    recovered: Recovered(
                        targets: try HistoryDatabase.targets(database), ledgers: ledgers(entries), lastAlive: lastAlive,
                        heartbeats: heartbeats, hasBooted: lastBoot.map { $0 != boot } ?? false,
                        interrupted: try HistoryDatabase.openIncidents(database), notes: []),
                    identifier: UInt32(truncatingIfNeeded: try HistoryDatabase.number("id", database) ?? 0),
                    next: max(first, (generations.last ?? 0) + 1), kept: Dictionary(kept) { first, _ in first },
                    pending: PendingRows(timeZone: settings.timeZone, firstNumber: entries.count))
            }
        }
    }

    private static func ledgers(_ entries: [LedgerBook.Entry?]) -> [Int: TargetLedger] {
        var ledgers: [Int: TargetLedger] = [:]
        for (target, entry) in entries.enumerated() { if let entry { ledgers[target] = entry.ledger } }
        return ledgers
    }
}

/// The work on the thread of the database.
extension HistoryStore {
    /// A handler of an outcome.
    typealias Handler<Value> = @Sendable (Result<Value, StoreError>) -> Void

    /// The incidents and path events that wait for the database. After an error they wait for the next attempt.
    private struct IncidentQueue: Sendable {
        /// The maximum number of path events that wait. The oldest are dropped beyond it; incidents never are.
        static let pathEventLimit = 1_000

        struct Waiting: Sendable {
            var incident: Incident
            /// The numbers of its targets.
            var members: TargetSet
            var completions: [@Sendable () -> Void]
        }

        /// The incidents by their identifiers: only the last state of each one.
        var incidents: [String: Waiting] = [:]
        var pathEvents: [(time: Int64, record: String)] = []

        /// Whether the last checkpoint failed. The next one does its work.
        var owesCheckpoint = false
    }

    /// Records an incident, or its new state. It is never dropped: after an error of the disk it is written when the disk works again.
    ///
    /// - Parameters:
    ///   - incident: the incident. A later state replaces an earlier one with the same identifier.
    ///   - members: the numbers of its targets, which join those of its earlier states. If there are none, they are those of
    ///     ``Incident/targets``.
    ///   - completion: called when the incident is on the disk (`synchronous=FULL`).
    func record(
        _ incident: Incident, of members: TargetSet = TargetSet(), completion: @escaping @Sendable () -> Void
    ) {
        guard !isClosed else { return }
        incidents.withLock { queue in
            var waiting =
                queue.incidents[incident.id] ?? IncidentQueue.Waiting(incident: incident, members: members, completions: [])
            waiting.incident = incident
            waiting.members.formUnion(members)
            waiting.completions.append(completion)
            queue.incidents[incident.id] = waiting
        }
        databaseThread.run { self.writeIncidents() }
    }

    /// Records a path event. - Parameter record: the keys of the record `path` as JSON.
    func record(pathEvent record: String, at time: Int64) {
        guard !isClosed else { return }
        incidents.withLock { queue in
            queue.pathEvents.append((time, record))
            if queue.pathEvents.count > IncidentQueue.pathEventLimit { queue.pathEvents.removeFirst() }
        }
        databaseThread.run { self.writePathEvents() }
    }

    /// Returns the numbers of targets, in their order. A key that the history does not know gets a new number. A target keeps its history
    /// by its key; changed names are kept. If the database cannot be written, the rows follow when it can.
    func register(_ targets: [TargetNames], completion: @escaping Handler<[Int]>) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        databaseThread.run {
            do throws(StoreError) {
                try self.writePending()
                let numbers = try self.database.register(targets, from: self.pending.withLock { $0.firstNumber })
                self.didWrite()
                completion(.success(numbers))
            } catch {
                self.condition.set(.database, error)
                let numbers = [.inputOutput, .refused].contains(error.code) ? self.numbers(of: targets) : nil
                completion(numbers.map { .success($0) } ?? .failure(error))
            }
        }
    }

    /// Gives numbers to targets while the database cannot be written; `nil` if it cannot be read either.
    private func numbers(of targets: [TargetNames]) -> [Int]? {
        var known = try? database.targets()
        if known == nil, let reader = try? HistoryReader(directory) {
            known = try? reader.targets()
            reader.close()
        }
        guard let known else { return nil }
        return pending.withLock { $0.numbers(of: targets, known) }
    }

    /// Moves the turns so far into the database, and applies the retention.
    func checkpoint(completion: @escaping Handler<Void> = { _ in }) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        logThread.run {
            self.writeTurns()
            let next = self.recorder.complete()
            self.databaseThread.run { completion(self.moveLogs(before: next)) }
        }
    }

    /// Removes the history after a time. The turns so far are moved into the database first.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - completion: called with the ledgers at that time. The keeper records no turn before.
    func withdraw(after time: Int64, completion: @escaping Handler<[Int: TargetLedger]>) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        logThread.run {
            self.writeTurns()
            let next = self.recorder.complete()
            self.databaseThread.run {
                if case .failure(let error) = self.moveLogs(before: next) { return completion(.failure(error)) }
                do throws(StoreError) {
                    let ledgers = try self.database.withdraw(after: time, calendar: self.calendar.withLock { $0 })
                    self.logThread.run { self.recorder.continue(at: time) }
                    completion(.success(ledgers))
                } catch {
                    self.condition.set(.database, error)
                    completion(.failure(error))
                }
            }
        }
    }

    // MARK: Queries

    /// The maximum time of a query in nanoseconds.
    private static let queryTime: Int64 = 2_000_000_000

    /// Runs a query on the thread of queries, which sees the turns in the logs too. A query that needs more than 2 seconds is interrupted
    /// (``StoreError/Code/timedOut``).
    func read<Value: Sendable>(
        _ query: @escaping @Sendable (HistoryReader) throws -> Value, completion: @escaping Handler<Value>
    ) {
        guard !isClosed else { return completion(.failure(Self.closedError)) }
        queryThread.run {
            do throws(StoreError) {
                let end = MonotonicClock.now() + Self.queryTime
                completion(.success(try self.openReader().run(until: end, query)))
            } catch {
                completion(.failure(error))
                if error.code == .timedOut { self.readLogs() }
            }
        }
    }

    /// Reads the turns in the logs after a query whose time was over, in steps between other queries, so that the next one has them.
    private func readLogs() {
        guard !isClosed else { return }
        queryThread.run {
            do throws(StoreError) {
                try self.openReader().run(until: MonotonicClock.now() + Self.queryTime) { _ in }
            } catch {
                if error.code == .timedOut { self.readLogs() }
            }
        }
    }

    /// Runs a query, and waits for its result.
    func read<Value: Sendable>(_ query: @escaping @Sendable (HistoryReader) throws -> Value) async throws(StoreError) -> Value {
        let result = await withCheckedContinuation { continuation in
            read(query) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private func openReader() throws(StoreError) -> HistoryReader {
        if let open = reader.withLock({ $0 }) { return open }
        let new = try HistoryReader(following: directory, calendar: calendar.withLock { $0 })
        reader.withLock { $0 = new }
        return new
    }

    /// Keeps what is known of jobs that report in. If the database cannot be written, it follows when it can.
    func record(_ heartbeats: [HeartbeatMemories.Job: HeartbeatMemory]) {
        guard !isClosed, !heartbeats.isEmpty else { return }
        let rows = HeartbeatRows.rows(heartbeats)
        pending.withLock { $0.heartbeats.merge(rows) { $1 } }
        databaseThread.run {
            do throws(StoreError) {
                try self.writePending()
                self.didWrite()
            } catch { self.condition.set(.database, error) }
        }
    }

    /// Changes the retention. It is applied by the next checkpoint.
    func set(_ retention: Retention) { settings.withLock { $0.retention = retention } }

    /// Changes the days. They are used by the next checkpoint.
    func set(_ calendar: DayCalendar) { self.calendar.withLock { $0 = calendar } }

    // MARK: Only on the thread of the database

    /// Opens the database if it could not be opened before, and writes the rows that it did not take.
    private func writePending() throws(StoreError) {
        if try database.openAgain(boot: BootIdentifier.current) {
            // The connection of the queries may take the file for one that never changes.
            queryThread.run {
                self.reader.withLock { reader in
                    reader?.close()
                    reader = nil
                }
            }
        }
        let rows = pending.withLock { $0 }
        guard !rows.isEmpty else { return }
        try database.write(.full) { try rows.write(to: $0) }
        // The logs of the former run may have targets without a row until they are moved.
        pending.withLock { pending in
            // Newer ones may have come meanwhile.
            let heartbeats = pending.heartbeats.filter { rows.heartbeats[$0.key] != $0.value }
            pending = PendingRows(heartbeats: heartbeats, firstNumber: rows.firstNumber)
        }
    }

    /// Tries again what failed.
    private func retry() {
        writeIncidents()
        writePathEvents()
        guard !incidents.withLock({ $0.owesCheckpoint }) else { return checkpoint() }
        // Nothing waits, for example after a failed registration: a small write shows whether the database works again.
        do throws(StoreError) {
            let wall = condition.wall
            try writePending()
            try database.write { try HistoryDatabase.set("last_attempt", wall, $0) }
            didWrite()
        } catch { condition.set(.database, error) }
    }

    /// Writes what has waited for the database, and then reports that it works. After a failed checkpoint it works only when the
    /// checkpoint has succeeded.
    private func didWrite() {
        let (owesCheckpoint, hasIncidents, hasPathEvents) = incidents.withLock {
            ($0.owesCheckpoint, !$0.incidents.isEmpty, !$0.pathEvents.isEmpty)
        }
        guard !owesCheckpoint else { return }
        // Both come back to this method.
        if hasIncidents { return writeIncidents() }
        if hasPathEvents { return writePathEvents() }
        condition.set(.database, nil)
    }

    private func writeIncidents() {
        let waiting = incidents.withLock { queue in
            defer { queue.incidents = [:] }
            return queue.incidents
        }
        guard !waiting.isEmpty else { return }
        do throws(StoreError) {
            try writePending()
            try database.write(.full) { database in
                for entry in waiting.values.sorted(by: { $0.incident.id < $1.incident.id }) {
                    try entry.incident.write(to: database, of: entry.members)
                }
            }
            didWrite()
            for entry in waiting.values { for completion in entry.completions { completion() } }
        } catch {
            // A newer state has come in the meantime, or it is still the last one.
            incidents.withLock { queue in
                queue.incidents.merge(waiting) { newer, older in
                    var members = older.members
                    members.formUnion(newer.members)
                    return IncidentQueue.Waiting(
                        incident: newer.incident, members: members, completions: older.completions + newer.completions)
                }
            }
            condition.set(.database, error)
        }
    }

    private func writePathEvents() {
        let events = incidents.withLock { queue in
            defer { queue.pathEvents = [] }
            return queue.pathEvents
        }
        guard !events.isEmpty else { return }
        do throws(StoreError) {
            try writePending()
            try database.write(pathEvents: events)
            didWrite()
        } catch {
            incidents.withLock { queue in
                queue.pathEvents = (events + queue.pathEvents).suffix(IncidentQueue.pathEventLimit)
            }
            condition.set(.database, error)
        }
    }

    /// Moves the logs before a generation into the database, removes them, and applies the retention.
    @discardableResult
    private func moveLogs(before next: UInt64, isClean: Bool = false) -> Result<Void, StoreError> {
        do throws(StoreError) {
            try writePending()
            let logs = directory.generations.filter { $0 < next }
            _ = try database.checkpoint(
                logs.map(directory.log), next: next, calendar: calendar.withLock { $0 }, stops: isClean, isClean: isClean)
            for log in logs { unlink(directory.log(log)) }
            recorder.didRemove(before: next)
            pending.withLock { $0.firstNumber = 0 }
            // The turns are in the database now, so the reader need not have them in memory.
            queryThread.run { self.reader.withLock { $0 }?.releaseTurns() }
            incidents.withLock { $0.owesCheckpoint = false }
            if let (wall, monotonic) = condition.clocks {
                let now = retentionClock.withLock { $0.read(wall: wall, monotonic: monotonic) }
                try database.apply(settings.withLock { $0.retention }, at: now)
            }
            didWrite()
            return .success(())
        } catch {
            incidents.withLock { $0.owesCheckpoint = true }
            condition.set(.database, error)
            return .failure(error)
        }
    }
}
