/// A value of which only the latest matters: a reader that missed some receives one value that covers all of them.
package protocol Coalescing: Sendable {
    /// Returns this value merged with `earlier`, which the reader never received: the result describes the changes of both.
    func merged(after earlier: Self) -> Self
    /// Returns this value in the form in which a new subscriber receives its first value.
    func asInitial() -> Self
    /// Updates `latest`, the first value of new subscribers, to the state after this value; by default to this value itself.
    ///
    /// - Returns: A value that is no longer needed, for the publisher to free outside the lock.
    func accumulate(into latest: inout Self?) -> Self?
}

extension Coalescing {
    package func accumulate(into latest: inout Self?) -> Self? {
        defer { latest = self }
        return latest.take()
    }
}

/// A publisher of values for any number of subscribers. It never blocks: each subscriber has room for one value, and a newer
/// value is merged with one that was not taken.
///
/// Its functions between ``publish(_:)`` and a subscriber's callback are inlinable: see ``Locked``. Without that, a value took
/// 50,000 instructions.
public final class Broadcast<Value: Sendable>: Sendable {
    /// The subscription of one subscriber. Releasing it ends the subscription.
    public final class Subscription: Sendable {
        @usableFromInline let slot: ReaderSlot<Value>
        @usableFromInline let notify: (@Sendable () -> Void)?
        private let number: UInt64
        @usableFromInline let owner: Broadcast

        fileprivate init(
            _ owner: Broadcast, _ number: UInt64, _ first: Value?, hasFinished: Bool, notify: (@Sendable () -> Void)?
        ) {
            self.owner = owner
            self.number = number
            self.notify = notify
            slot = ReaderSlot(first, hasFinished: hasFinished)
        }

        deinit { owner.remove(number) }

        /// Takes the available value, if any.
        @inlinable
        public func take() -> Value? { slot.take() }

        /// Whether a value is available.
        package var hasValue: Bool { slot.hasValue }

        /// Waits for the next value; `nil` if the broadcast has finished or the task is canceled. One task at a time may wait:
        /// a second one replaces the first, which receives `nil`.
        package func next() async -> Value? { await slot.next() }

        @inlinable
        func offer(_ value: Value) {
            if slot.offer(value, merging: { owner.merged(value, $0) }) == .stored { notify?() }
        }

        fileprivate func finish() { slot.finish() }
    }

    @usableFromInline
    struct Entry: Sendable {
        let number: UInt64
        @usableFromInline weak var subscription: Subscription?
    }

    @usableFromInline
    struct State: Sendable {
        @usableFromInline var latest: Value?
        // In the order of subscription, which is also the order of delivery.
        @usableFromInline var entries: [Entry] = []
        var nextNumber: UInt64 = 0
        var hasFinished = false
    }

    @usableFromInline let state: Locked<State>
    // The functions of ``Coalescing``, which is not public.
    @usableFromInline let merged: @Sendable (_ value: Value, _ earlier: Value) -> Value
    @usableFromInline let accumulate: @Sendable (_ value: Value, _ latest: inout Value?) -> Value?
    private let asInitial: @Sendable (Value) -> Value

    /// Creates a broadcast. `latest`: the value that subscribers receive before anything is published; `nil` for none.
    package init(_ latest: Value? = nil) where Value: Coalescing {
        state = Locked(State(latest: latest))
        merged = { $0.merged(after: $1) }
        accumulate = { $0.accumulate(into: &$1) }
        asInitial = { $0.asInitial() }
    }

    /// The value that was published last.
    package var latest: Value? { state.withLock { $0.latest } }

    /// The current number of subscribers.
    package var subscriberCount: Int { state.withLock { $0.entries.count } }

    /// Subscribes. The latest value, if there is one, is the first value unless `includingLatest` is false. The publisher calls
    /// `notify` when a later value becomes available; it must not block.
    package func subscribe(includingLatest: Bool = true, notify: (@Sendable () -> Void)? = nil) -> Subscription {
        state.withLock { state in
            let number = state.nextNumber
            state.nextNumber += 1
            let first = includingLatest ? state.latest.map(asInitial) : nil
            let subscription = Subscription(self, number, first, hasFinished: state.hasFinished, notify: notify)
            state.entries.append(Entry(number: number, subscription: subscription))
            return subscription
        }
    }

    /// Publishes a value.
    @inlinable
    public func publish(_ value: Value) {
        let (subscriptions, former) = state.withLock { state in
            (state.entries.compactMap { $0.subscription }, accumulate(value, &state.latest))
        }
        for subscription in subscriptions { subscription.offer(value) }
        // Freed after the subscribers are notified, so that they do not wait for it.
        _ = consume former
    }

    /// Ends the broadcast: nothing is published any more. Readers end after the value that is available to them.
    package func finish() {
        let subscriptions = state.withLock { state in
            state.hasFinished = true
            return state.entries.compactMap { $0.subscription }
        }
        for subscription in subscriptions { subscription.finish() }
    }

    private func remove(_ number: UInt64) { state.withLock { $0.entries.removeAll { $0.number == number } } }
}
