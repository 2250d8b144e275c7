extension Broadcast {
    /// Calls `body` with each value, or with one value that replaces several. Calls never overlap, and stop when the callback
    /// is released or ended.
    ///
    /// `schedule` receives a job each time a value becomes available. It must not block, and runs the job on the thread or
    /// queue on which `body` may be called.
    @inlinable
    public func call(
        includingLatest: Bool = true, _ body: @escaping @Sendable (Value) -> Void,
        by schedule: @escaping @Sendable (_ job: @escaping @Sendable () -> Void) -> Void
    ) -> Callback {
        let callback = Callback(body)
        let job: @Sendable () -> Void = { [weak callback] in callback?.call() }
        // A job for a value that was published before the subscription is attached finds no subscription.
        if callback.attach(to: self, includingLatest: includingLatest, notify: { schedule(job) }) { schedule(job) }
        return callback
    }

    /// A callback with its subscription. Calls never overlap, not even on a concurrent queue.
    public final class Callback: Sendable {
        @usableFromInline
        struct State: Sendable {
            @usableFromInline var subscription: Subscription?
            @usableFromInline var isCalling = false
        }

        @usableFromInline let state = Locked(State())
        @usableFromInline let body: @Sendable (Value) -> Void

        @usableFromInline
        init(_ body: @escaping @Sendable (Value) -> Void) { self.body = body }

        /// - Returns: Whether a value is already available.
        @usableFromInline
        func attach(to broadcast: Broadcast, includingLatest: Bool, notify: @escaping @Sendable () -> Void) -> Bool {
            let subscription = broadcast.subscribe(includingLatest: includingLatest, notify: notify)
            state.withLock { $0.subscription = subscription }
            return subscription.hasValue
        }

        /// Ends the callback: no further call begins. A call in progress on another thread may still be running when this
        /// returns.
        package func end() {
            // Released outside the lock, because the subscription's deinit takes the broadcast's lock.
            let subscription = state.withLock { state in
                defer { state.subscription = nil }
                return state.subscription
            }
            _ = consume subscription
        }

        /// Ends the callback and calls it once more, with `value`; also after ``end()``. The caller must be on the thread or
        /// serial queue on which the other calls are made.
        package func end(with value: Value) {
            end()
            body(value)
        }

        // The thread that is in a call also delivers the values that arrive meanwhile.
        @inlinable
        func call() {
            let isFirst = state.withLock { state in
                defer { state.isCalling = true }
                return !state.isCalling
            }
            guard isFirst else { return }
            while let value = next() { body(value) }
        }

        @inlinable
        func next() -> Value? {
            state.withLock { state in
                let value = state.subscription?.take()
                if value == nil { state.isCalling = false }
                return value
            }
        }
    }
}
