import EventLoop
import Pacing

/// Whether the history is recorded: the state of the log, and that of the database.
final class RecordingCondition: Sendable {
    /// A part of the store.
    enum Part: Sendable {
        case log
        case database
    }

    private struct Parts: Sendable {
        var log: StoreError?
        var database: StoreError?
        var status: RecordingStatus
        var retryTime: Int64?
        /// The time by which the wall clock is behind that of the turns, in milliseconds.
        var lag: Int64 = 0
        /// The last time of a turn.
        var monotonic: Int64 = .min
        var wall: Int64
    }

    private struct Handler: Sendable {
        let call: @Sendable (RecordingStatus) -> Void
    }

    private let parts: Locked<Parts>
    private let retryInterval: Int64
    private let handler: Handler

    init(since: Int64, retryInterval: Int64, _ handler: @escaping @Sendable (RecordingStatus) -> Void) {
        parts = Locked(Parts(status: RecordingStatus(reason: nil, since: since), wall: since))
        (self.retryInterval, self.handler) = (retryInterval, Handler(call: handler))
    }

    var status: RecordingStatus { parts.withLock { $0.status } }
    /// The time of the last turn in milliseconds since 1970.
    var wall: Int64 { parts.withLock { $0.wall } }
    /// The wall clock and the monotonic clock of the last turn; `nil` before the first one.
    var clocks: (wall: Int64, monotonic: Int64)? {
        parts.withLock { $0.monotonic == .min ? nil : ($0.wall - $0.lag, $0.monotonic) }
    }

    /// Notes the time by which the wall clock is behind that of the turns, in milliseconds.
    func set(lag: Int64) { parts.withLock { $0.lag = lag } }

    /// Sets or removes the error of a part, and reports a change of the status.
    func set(_ part: Part, _ error: StoreError?, at time: ClockReading? = nil) {
        let change = parts.withLock { parts -> RecordingStatus? in
            if let time { (parts.monotonic, parts.wall) = (time.monotonic, time.wall) }
            switch part {
            case .log: parts.log = error
            case .database:
                parts.database = error
                parts.retryTime = error == nil ? nil : parts.monotonic.addingSaturated(retryInterval)
            }
            let reason = (parts.log ?? parts.database)?.reason
            guard (reason == nil) != parts.status.isRecording else {
                parts.status.reason = reason
                return nil
            }
            parts.status = RecordingStatus(reason: reason, since: parts.wall)
            return parts.status
        }
        if let change { handler.call(change) }
    }

    /// Whether a part has an error.
    func hasFailed(_ part: Part) -> Bool { parts.withLock { part == .log ? $0.log != nil : $0.database != nil } }

    /// Returns whether the database failed and is to be tried again. It returns `true` once for each attempt.
    func isRetryDue(at time: ClockReading) -> Bool {
        parts.withLock { parts in
            guard let retryTime = parts.retryTime, time.monotonic >= retryTime else { return false }
            parts.retryTime = nil
            return true
        }
    }
}

/// A signal from one thread to another that waits.
struct Completion: Sendable {
    private let isDone = Locked(false)
    private let waker = try? Waker(blocks: true)

    func signal() {
        isDone.withLock { $0 = true }
        waker?.wake()
    }

    func wait() {
        while !isDone.withLock({ $0 }) { waker?.waitAndAcknowledge() }
    }
}

/// The state of the recording.
struct RecordingStatus: Hashable, Sendable {
    /// The reason for which nothing is recorded; `nil` while the history is recorded.
    var reason: String?
    /// The time of the last change in milliseconds since 1970.
    var since: Int64

    var isRecording: Bool { reason == nil }
}
