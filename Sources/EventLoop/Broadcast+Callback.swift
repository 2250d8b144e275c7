extension Broadcast {
    /// Calls `body` with each value, or with one that stands for several, one call at a time, until the callback is let go of or ended.
    /// `schedule` is given a job whenever a value begins to wait; it must not block, and runs the job where `body` may be called.
    package func call(
        withPresent: Bool = true, _ body: @escaping @Sendable (Value) -> Void,
        by schedule: @escaping @Sendable (_ job: @escaping @Sendable () -> Void) -> Void
    ) -> Callback {
        let callback = Callback(body)
        let job: @Sendable () -> Void = { [weak callback] in callback?.call() }
        // A job for what was published before the subscription is attached finds none.
        if callback.attach(subscribe(withPresent: withPresent) { schedule(job) }) { schedule(job) }
        return callback
    }

    /// A callback with its subscription; calls never overlap, also on a concurrent queue.
    package final class Callback: Sendable {
        private struct State: Sendable {
            var subscription: Subscription?
            var isCalling = false
        }

        private let state = Locked(State())
        private let body: @Sendable (Value) -> Void

        fileprivate init(_ body: @escaping @Sendable (Value) -> Void) { self.body = body }

        /// - Returns: whether a value waits already.
        fileprivate func attach(_ subscription: Subscription) -> Bool {
            state.withLock { $0.subscription = subscription }
            return subscription.hasValue
        }

        /// No further call begins. A call that is under way on another thread is not waited for.
        package func end() {
            // Dropped outside the lock: it takes the broadcast's.
            let subscription = state.withLock { state in
                defer { state.subscription = nil }
                return state.subscription
            }
            _ = consume subscription
        }

        /// The last call, with `value`, also after ``end()``; to be made where the others are, which come one after another there.
        package func end(with value: Value) {
            end()
            body(value)
        }

        // Whoever is in a call takes what comes meanwhile as well.
        fileprivate func call() {
            let isMine = state.withLock { state in
                defer { state.isCalling = true }
                return !state.isCalling
            }
            guard isMine else { return }
            while let value = next() { body(value) }
        }

        private func next() -> Value? {
            state.withLock { state in
                let value = state.subscription?.take()
                if value == nil { state.isCalling = false }
                return value
            }
        }
    }
}
