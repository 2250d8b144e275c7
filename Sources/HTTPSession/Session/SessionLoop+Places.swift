/// The places of suspended transfers in the queue, and of those that wait for the program: for a reader of their chunks, or for bytes to send.
///
/// Without this, six suspended downloads, or six streams that nobody reads, would keep all further requests to their host from starting. Such a transfer
/// therefore yields its place to a task that waits for it, and keeps its connection: the host may then have more connections than the configuration
/// allows, but the session not.
extension SessionLoop {
    /// The time for which a suspended transfer keeps its place, in nanoseconds.
    static let placeDuration: Int64 = 1_000_000_000

    /// The time at which the next suspended transfer may yield its place; `nil` if nobody waits for one.
    var placeDeadline: Int64? {
        guard !suspendedTransfers.isEmpty, queue.waiting > 0 else { return nil }
        return suspendedTransfers.lazy.filter { self.mayYield($0.key) }.map { $0.value + SessionLoop.placeDuration }.min()
    }

    /// Whether a task waits for the place of this one. A task that resolves its host's name for others keeps its place.
    private func mayYield(_ id: UInt64) -> Bool {
        run(id).map { queue.isWanted($0.host) && !queue.isResolving(id, $0.host) } ?? false
    }

    /// Gives the places of suspended transfers to tasks that wait for them. - Returns: Whether a place has become free.
    func yieldPlaces() -> Bool {
        guard !suspendedTransfers.isEmpty, queue.waiting > 0 else { return false }
        let due = suspendedTransfers.filter { $0.value + SessionLoop.placeDuration <= now && mayYield($0.key) }
        for (id, _) in due.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            guard let run = run(id), queue.yield(id, from: run.host) else { continue }
            run.hasYieldedPlace = true
            suspendedTransfers[id] = nil
            engine.allowConnections(beyondLimit: queue.yielded)
            return true
        }
        return false
    }

    /// The transfer of a task that has yielded its place has ended.
    func releaseYieldedPlace() {
        queue.releaseYielded()
        engine.allowConnections(beyondLimit: queue.yielded)
    }
}
