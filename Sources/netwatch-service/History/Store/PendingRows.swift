import GRDB

/// The rows that the database did not take because it could not be written. The next transaction that succeeds writes them first.
struct PendingRows: Sendable {
    /// The name of the zone of the days; `nil` if the database has it.
    var timeZone: String?
    /// What is known of jobs that report in (``HeartbeatRows``), by the keys of their rows, and the database does not have.
    var heartbeats: [String: String] = [:]
    /// The targets that have a number, or other names, since the database cannot be written.
    var targets: [HistoryStore.Target] = []
    /// The lowest number that no target has in the logs of the former run. Their targets may have no rows: it was killed before them.
    var firstNumber = 0

    var isEmpty: Bool { timeZone == nil && heartbeats.isEmpty && targets.isEmpty }

    /// Gives numbers to targets. - Parameter known: the targets of the database.
    mutating func numbers(of wanted: [HistoryStore.TargetNames], _ known: [HistoryStore.Target]) -> [Int]? {
        var latest = Dictionary((known + targets).map { ($0.key, $0) }) { $1 }
        var next = max(firstNumber, (latest.values.map(\.number).max() ?? -1) + 1)
        var changed: [String: HistoryStore.Target] = Dictionary(targets.map { ($0.key, $0) }) { $1 }
        var numbers: [Int] = []
        for names in wanted {
            let former = latest[names.key]
            guard let number = former?.number ?? (next < TurnCoder.targetLimit ? next : nil) else { return nil }
            if former == nil { next += 1 }
            let target = HistoryStore.Target(number: number, names: names)
            if former?.names != names { changed[names.key] = target }
            latest[names.key] = target
            numbers.append(number)
        }
        targets = changed.values.sorted { $0.number < $1.number }
        return numbers
    }

    func write(to database: Database) throws {
        if let timeZone { try HistoryDatabase.set("time_zone", timeZone, database) }
        for (key, value) in heartbeats { try HistoryDatabase.set(key, value, database) }
        for target in targets { try target.names.write(Int64(target.number), to: database) }
    }
}

extension ClockReading {
    /// Reads the time of the last turn before the last checkpoint; `nil` for a new history.
    init?(lastIn database: Database) throws {
        // The values of a damaged file may be any numbers.
        func time(_ key: String) throws -> Int64? { try HistoryDatabase.number(key, database).map(SampleBlock.limited) }
        guard let wall = try time("last_alive") else { return nil }
        self.init(wall: wall, monotonic: try time("last_monotonic") ?? 0, bootTime: try time("last_boottime") ?? 0)
    }
}
