import EventLoop
import Glibc
import Reachability

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
                return Start(
                    recovered: Recovered(
                        targets: try HistoryDatabase.targets(database), ledgers: ledgers(entries), lastAlive: lastAlive,
                        hasBooted: lastBoot.map { $0 != boot } ?? false,
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
