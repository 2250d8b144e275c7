internal import EventLoop

/// The kernel's state, or what changed of it.
public enum SnapshotUpdate: Hashable, Sendable {
    /// Everything: the first element, and again for a reader that fell behind.
    case full(NetworkSnapshot)
    /// What changed since the element before.
    case changes([SnapshotChange])
}

/// A monitor's snapshot and its changes; each iteration begins with the full snapshot.
public struct SnapshotUpdates: AsyncSequence, Sendable {
    /// The state or what changed of it.
    public typealias Element = SnapshotUpdate
    /// It never fails.
    public typealias Failure = Never

    let core: MonitorCore

    /// A new subscription.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: SnapshotReader(core)) }

    /// A subscription.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: SnapshotReader

        /// The next element; `nil` at the end of watching, and when the task is cancelled.
        public mutating func next() async -> SnapshotUpdate? { await reader.next() }

        /// The same, wherever the caller runs.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SnapshotUpdate? { await reader.next() }
    }
}

/// One reader's place: changes gather until it takes them, up to a limit; beyond, they are dropped and it begins anew.
final class SnapshotReader: Sendable {
    /// Changes that are kept for a reader.
    static let limit = 10_000

    private struct State: Sendable {
        var pending: SnapshotUpdate?
        var waiter: CheckedContinuation<SnapshotUpdate?, Never>?
        var isBehind = true
        var hasFinished = false
    }

    private let state = Locked(State())
    private let core: MonitorCore

    init(_ core: MonitorCore) { self.core = core }

    func next() async -> SnapshotUpdate? {
        let begins = state.withLock { state in
            guard state.isBehind, state.pending == nil, !state.hasFinished else { return false }
            state.isBehind = false
            return true
        }
        if begins { core.follow { [weak self] snapshot, changes in self?.offer(snapshot, changes) ?? false } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<SnapshotUpdate?, Never>) in
                let (ready, displaced) = state.withLock {
                    state -> (SnapshotUpdate??, CheckedContinuation<SnapshotUpdate?, Never>?) in
                    if let pending = state.pending {
                        state.pending = nil
                        return (.some(pending), nil)
                    }
                    if state.hasFinished || Task.isCancelled { return (.some(nil), nil) }
                    // One task at a time may wait: another one takes its place.
                    let displaced = state.waiter
                    state.waiter = continuation
                    return (nil, displaced)
                }
                displaced?.resume(returning: nil)
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            wake(with: nil)
        }
    }

    // Called on the monitor's thread; false ends the following.
    private func offer(_ snapshot: NetworkSnapshot?, _ changes: [SnapshotChange]) -> Bool {
        guard let snapshot else {
            state.withLock { $0.hasFinished = true }
            wake(with: nil)
            return false
        }
        let (waiter, update, goesOn) = state.withLock {
            state -> (CheckedContinuation<SnapshotUpdate?, Never>?, SnapshotUpdate, Bool) in
            // The first call has no changes.
            let update: SnapshotUpdate = changes.isEmpty ? .full(snapshot) : .changes(changes)
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, update, true)
            }
            switch state.pending {
            case nil: state.pending = update
            case .changes(let earlier) where earlier.count + changes.count <= Self.limit:
                state.pending = .changes(earlier + changes)
            default:
                // A full snapshot that nobody took would be copied with every change; it is asked for again instead.
                state.pending = nil
                state.isBehind = true
            }
            return (nil, update, !state.isBehind)
        }
        waiter?.resume(returning: update)
        return goesOn
    }

    private func wake(with value: SnapshotUpdate?) {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: value)
    }
}
