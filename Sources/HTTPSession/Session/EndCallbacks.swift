internal import Dispatch
internal import EventLoop

/// The callbacks that are still to run of one task's end, and what those that have run were told.
final class EndCallbacks: Sendable {
    private let group = DispatchGroup()
    private let told = Locked<[TransferTask.Serialization?]>([])

    /// One more is to run. - Returns: its place among them.
    func enter() -> Int {
        group.enter()
        return told.withLock { told in
            told.append(nil)
            return told.count - 1
        }
    }

    /// The one at this place has run.
    func leave(_ place: Int, told what: TransferTask.Serialization) {
        told.withLock { $0[place] = what }
        group.leave()
    }

    /// Calls back when all have run, with what they were told in the order of their places.
    func notify(_ queue: DispatchQueue, _ body: @escaping @Sendable ([TransferTask.Serialization]) -> Void) {
        group.notify(queue: queue) { [told] in body(told.withLock { $0 }.compactMap(\.self)) }
    }
}
