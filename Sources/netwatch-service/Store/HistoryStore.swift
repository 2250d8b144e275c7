import Reachability

/// The history of all targets on the disk: a database, and beside it the log of the turns since the last checkpoint.
///
/// No method blocks. A turn is written to the memory-mapped log by a thread of its own within milliseconds, so SIGKILL loses none that
/// was written. A checkpoint moves the log's turns into the database: samples become blocks, ended hours and days become rows.
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

    /// A target that the history knows.
    struct Target: Hashable, Sendable {
        /// The number in turns and results. Numbers are small, begin at 0 and are never reused.
        var number: Int
        /// The identity of the target: its identifier, or its text.
        var key: String
        /// The name for people.
        var title: String
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
}
