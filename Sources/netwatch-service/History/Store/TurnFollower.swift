import GRDB

/// The ledgers of all targets since the last checkpoint, which follow the logs while they are written.
///
/// Each turn of a log is read once. After a checkpoint, the follower begins again with the ledgers of the database.
// @unchecked: one thread uses a reader at a time, and the reader alone uses its follower.
final class TurnFollower: @unchecked Sendable {
    private let directory: StateDirectory
    private let calendar: DayCalendar
    /// The ledgers until the last turn that was read; `nil` before the first one.
    private(set) var book: LedgerBook?
    /// The first log whose turns are not in the database; `nil` before the first one was read.
    private(set) var generation: UInt64?
    private var log: TurnLogReader?
    /// The number of the log that is read, or of the next one.
    private var number: UInt64 = 0
    private var identifier: Int64 = 0

    init(_ directory: StateDirectory, _ calendar: DayCalendar) { (self.directory, self.calendar) = (directory, calendar) }

    /// Reads the first generation of a log whose turns are not in the database.
    static func generation(_ database: Database) throws -> UInt64 {
        UInt64(clamping: try HistoryDatabase.number("generation", database) ?? 0)
    }

    /// Forgets what was read.
    func release() { (book, generation, log) = (nil, nil, nil) }

    /// Reads the turns since the last call.
    ///
    /// - Throws: ``StoreError`` if the deadline of the query has passed. The next call continues.
    func advance(_ reader: HistoryReader) throws {
        try reader.read { database in
            let first = try Self.generation(database)
            guard first != generation || book == nil else { return }
            identifier = try HistoryDatabase.number("id", database) ?? 0
            book = LedgerBook(try HistoryDatabase.entries(database).entries, calendar)
            (generation, number, log) = (first, first, nil)
        }
        while true {
            // A log is complete when the next one exists, so the next one is looked for first.
            let generations = directory.generations
            if log == nil {
                guard let next = generations.first(where: { $0 >= number }) else { break }
                number = next
                // A log that cannot be read is left out.
                log = try? TurnLogReader(directory.log(next))
            }
            let later = generations.first { $0 > number }
            if let log, Int64(log.header.database) == identifier {
                while let turn = try log.next() {
                    apply(turn)
                    try reader.checkTime()
                }
            }
            guard let later else { break }
            (number, log) = (later, nil)
        }
        book?.advance()
    }

    private func apply(_ turn: HistoryTurn) {
        // Targets that were registered after the ledgers were read.
        for case .begin(let target, _, _) in turn.events where 0..<TurnCoder.targetLimit ~= target { book?.reserve(target) }
        book?.apply(turn)
    }
}
