internal import EventLoop

extension Kernel {
    /// The kernel's state, or what changed of it.
    @nonexhaustive public enum SnapshotUpdate: Hashable, Sendable {
        /// Everything: the first element, and again for a reader that fell behind.
        case full(Kernel.Snapshot)
        /// What changed since the element before.
        case changes([Kernel.Change])
    }
}

extension Kernel {
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
}

/// One reader of a monitor's snapshot: changes gather until it takes them, up to a limit; beyond, they are dropped and it begins anew.
final class SnapshotReader: Sendable {
    /// Changes that are kept for a reader.
    static let limit = 10_000

    private let place = ReaderSlot<Kernel.SnapshotUpdate>(isBehind: true)
    private let core: MonitorCore

    init(_ core: MonitorCore) { self.core = core }

    func next() async -> Kernel.SnapshotUpdate? {
        if place.catchUp() { core.follow { [weak self] snapshot, changes in self?.offer(snapshot, changes) ?? false } }
        return await place.next()
    }

    // Called on the monitor's thread; false ends the following.
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
    /// What stands for this update and an earlier one that nobody took; `nil` where that would be too much: a full snapshot would be
    /// copied with every change, so it is asked for again instead.
    func following(_ earlier: Kernel.SnapshotUpdate) -> Kernel.SnapshotUpdate? {
        guard case .changes(let earlier) = earlier, case .changes(let changes) = self else { return nil }
        return earlier.count + changes.count <= SnapshotReader.limit ? .changes(earlier + changes) : nil
    }
}
