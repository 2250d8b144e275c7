import EventLoop
import Reachability
import Records

/// The records that the keeper appends and that streams read, each at its own speed.
///
/// Streams at the same place receive the same buffer: the records are joined once for all of them.
final class EventFeed: Sendable {
    /// The reason why a waiting stream continues.
    enum Wake: Hashable, Sendable {
        /// New records are there.
        case records
        /// Nothing happened for a while: the stream writes a comment, so that proxies do not close it.
        case silence
        /// The service ends, or the stream's connection is closed.
        case ended
    }

    /// A waiting stream. Its connection ends the wait when it is closed.
    final class Waiter: Sendable {
        fileprivate struct State {
            var continuation: CheckedContinuation<Wake, Never>?
            var hasEnded = false
        }

        fileprivate let state = Locked(State())

        /// Ends the present wait and all later ones.
        func end() { resume(.ended) }

        fileprivate func resume(_ wake: Wake) {
            let continuation = state.withLock { state in
                if wake == .ended { state.hasEnded = true }
                let continuation = state.continuation
                state.continuation = nil
                return continuation
            }
            continuation?.resume(returning: wake)
        }
    }

    private struct State {
        var log: EventLog
        var waiters: [ObjectIdentifier: Waiter] = [:]
        var hasEnded = false
        /// The last joined records, and the place before them.
        var shared: (place: EventLog.Cursor, batch: EventLog.Batch)?
    }

    private let state: Locked<State>
    /// The identifier of the record with the number 0 (``EventLog/firstID``).
    let firstID: Int

    init(limits: EventLog.Limits = EventLog.Limits(), firstID: Int = 0) {
        self.firstID = firstID
        state = Locked(State(log: EventLog(limits: limits, firstID: firstID)))
    }

    /// Creates the records of a run of the service. - Parameter time: its start in milliseconds since 1970.
    convenience init(of time: Int64) {
        // No run has a million records a second for long. JavaScript has exact integers up to 9,007,199,254,740,991.
        self.init(firstID: Int(max(0, min(time, 8_000_000_000_000))) * 1_000)
    }

    /// The number of the last record; -1 before the first one.
    var last: Int { state.withLock { $0.log.next - 1 } }

    /// Numbers, encodes and adds a record, and returns its number. Only the keeper calls it.
    ///
    /// `key` is the unique key of the target; `nil` for a record that every reader receives.
    @discardableResult
    func append(_ record: Record, with encoder: RecordEncoder, key: String? = nil) -> Int {
        var record = record
        record.seq = last + 1
        let event = EventLog.Event(
            type: record.kind.rawValue, subject: Self.subject(record, key), key: key, json: encoder.encode(record))
        append(event)
        return record.seq
    }

    /// Adds a record that is encoded with the number after ``last``.
    func append(_ event: EventLog.Event) {
        let waiters = state.withLock { state in
            state.log.append(event)
            let waiters = state.waiters
            state.waiters = [:]
            return waiters
        }
        for waiter in waiters.values { waiter.resume(.records) }
    }

    private static func subject(_ record: Record, _ key: String?) -> String? {
        switch record.subject {
        case .path: "path"
        case .target(let id): "target \(key ?? "\(id.number)")"
        case .probe(let id): "probe \(key ?? "\(id.number)")"
        case .incident(let id): "incident \(id)"
        case .resync: "resync"
        case nil: nil
        }
    }

    /// Returns the records after a cursor. See ``EventLog/read(after:keys:)``.
    func read(after cursor: EventLog.Cursor, keys: Set<String>?) -> EventLog.Batch {
        state.withLock { state in
            guard keys == nil else { return state.log.read(after: cursor, keys: keys) }
            // A batch is complete if no record follows it, or if it is full.
            if let shared = state.shared, shared.place == cursor, case .frames(let frames, let after) = shared.batch,
                after.seq == state.log.next - 1 || frames.count >= EventLog.batchSize
            {
                return shared.batch
            }
            let batch = state.log.read(after: cursor)
            state.shared = (cursor, batch)
            return batch
        }
    }

    /// Returns the cursor after a record that a board knows. It skips records that the log no longer has.
    func place(after seq: Int) -> EventLog.Cursor {
        state.withLock { EventLog.Cursor(seq: min(max(seq, $0.log.first - 1), $0.log.next - 1)) }
    }

    /// Waits until the feed has a record after `seq`, or until the next ``keepAlive()``.
    func wait(after seq: Int, _ waiter: Waiter) async -> Wake {
        await withCheckedContinuation { continuation in
            let wake: Wake? = state.withLock { state in
                if state.hasEnded { return .ended }
                if state.log.next - 1 > seq { return .records }
                let hasEnded = waiter.state.withLock { waiting in
                    if !waiting.hasEnded { waiting.continuation = continuation }
                    return waiting.hasEnded
                }
                if hasEnded { return .ended }
                state.waiters[ObjectIdentifier(waiter)] = waiter
                return nil
            }
            if let wake { continuation.resume(returning: wake) }
        }
    }

    /// Removes a waiter whose stream has ended.
    func remove(_ waiter: Waiter) { state.withLock { $0.waiters[ObjectIdentifier(waiter)] = nil } }

    /// Lets all waiting streams write a comment.
    func keepAlive() { wakeAll(.silence) }

    /// Ends all streams, and those that begin later.
    func end() {
        state.withLock { $0.hasEnded = true }
        wakeAll(.ended)
    }

    private func wakeAll(_ wake: Wake) {
        let waiters = state.withLock { state in
            let waiters = state.waiters
            state.waiters = [:]
            return waiters
        }
        for waiter in waiters.values { waiter.resume(wake) }
    }
}
