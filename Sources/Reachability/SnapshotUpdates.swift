internal import EventLoop

extension Kernel {
    /// The kernel's state, or its changes. Later versions may add cases.
    @nonexhaustive public enum SnapshotUpdate: Hashable, Sendable {
        /// The full snapshot: the first element, and again for a reader that was too slow.
        case full(Kernel.Snapshot)
        /// The changes since the previous element, in order.
        case changes([Kernel.Change])
    }
}

extension Kernel {
    /// A monitor's snapshot and its changes. Each iteration begins with the full snapshot.
    public struct SnapshotUpdates: AsyncSequence, Sendable {
        /// The kernel's state, or its changes.
        public typealias Element = SnapshotUpdate
        /// The sequence never fails.
        public typealias Failure = Never

        let core: MonitorCore

        /// Creates a subscription, which begins with the full snapshot.
        public func makeAsyncIterator() -> Iterator { Iterator(reader: SnapshotReader(core)) }

        /// A subscription to the snapshot and its changes.
        public struct Iterator: AsyncIteratorProtocol {
            let reader: SnapshotReader

            /// Waits for the next element; `nil` at the monitor's end, and if the task is canceled.
            public mutating func next() async -> SnapshotUpdate? { await reader.next() }

            /// Waits for the next element, in the caller's isolation; `nil` at the monitor's end, and if the task is canceled.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> SnapshotUpdate? { await reader.next() }
        }
    }
}

/// One reader of a monitor's snapshot. Changes are collected for the reader up to a limit. Beyond it, they are dropped, and the
/// reader restarts with a full snapshot.
final class SnapshotReader: Sendable {
    /// The maximum number of changes that are collected for a reader.
    static let limit = 10_000

    private let place = ReaderSlot<Kernel.SnapshotUpdate>(isBehind: true)
    private let core: MonitorCore

    init(_ core: MonitorCore) { self.core = core }

    func next() async -> Kernel.SnapshotUpdate? {
        await place.next { core.follow { [weak self] snapshot, changes in self?.offer(snapshot, changes) ?? false } }
    }

    // Called on the monitor's thread; returns false to unsubscribe.
    private func offer(_ snapshot: Kernel.Snapshot?, _ changes: [Kernel.Change]) -> Bool {
        guard let snapshot else {
            place.finish()
            return false
        }
        // The first call has no changes.
        let update: Kernel.SnapshotUpdate = changes.isEmpty ? .full(snapshot) : .changes(changes)
        return place.offer(update, merging: { update.following($0) }) != .dropped
    }
}

extension Kernel.SnapshotUpdate {
    /// Returns one update for this update and an earlier pending one; `nil` if the result would be too large. A full snapshot is
    /// not combined with changes, because each change would copy it; the reader requests it again.
    func following(_ earlier: Kernel.SnapshotUpdate) -> Kernel.SnapshotUpdate? {
        guard case .changes(let earlier) = earlier, case .changes(let changes) = self else { return nil }
        return earlier.count + changes.count <= SnapshotReader.limit ? .changes(earlier + changes) : nil
    }
}
