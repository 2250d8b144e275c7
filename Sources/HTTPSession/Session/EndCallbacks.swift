internal import Dispatch
internal import EventLoop

/// The completion callbacks of one task: how many have not run yet, and the values that the others received.
final class EndCallbacks: Sendable {
    private let group = DispatchGroup()
    private let serializations = Locked<[TransferTask.Serialization?]>([])

    /// Adds a callback. - Returns: The index of the callback.
    func enter() -> Int {
        group.enter()
        return serializations.withLock { serializations in
            serializations.append(nil)
            return serializations.count - 1
        }
    }

    /// Records that the callback with this index has run, and the value that it received.
    func leave(_ index: Int, received serialization: TransferTask.Serialization) {
        serializations.withLock { $0[index] = serialization }
        group.leave()
    }

    /// Calls back when all callbacks have run, with the values that they received, in the order of their indexes.
    func notify(_ queue: DispatchQueue, _ body: @escaping @Sendable ([TransferTask.Serialization]) -> Void) {
        group.notify(queue: queue) { [serializations] in body(serializations.withLock { $0 }.compactMap(\.self)) }
    }
}
