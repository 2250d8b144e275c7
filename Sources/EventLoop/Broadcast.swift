/// A value of which only the latest counts: a reader that skipped some gets one that stands for them all.
package protocol Coalescing: Sendable {
    /// This value as the successor of `earlier`, which was never seen: it tells what changed since before `earlier`.
    func following(_ earlier: Self) -> Self
    /// This value as the first that a subscriber sees.
    func asInitial() -> Self
    /// Makes `latest`, which subscribers begin with, the state after this value; by default this value itself.
    ///
    /// - Returns: a value that is no longer needed, for the publisher to free.
    func accumulate(into latest: inout Self?) -> Self?
}

extension Coalescing {
    package func accumulate(into latest: inout Self?) -> Self? {
        defer { latest = self }
        return latest.take()
    }
}

/// Hands the latest value to any number of subscribers. The publisher is never held up: each subscriber has room for one value,
/// and a newer one takes the place of one that was not taken.
package final class Broadcast<Value: Coalescing>: Sendable {
    /// One subscriber's place. Dropping it ends the subscription.
    package final class Subscription: Sendable {
        private let place: ReaderPlace<Value>
        fileprivate let notify: (@Sendable () -> Void)?
        private let number: UInt64
        private let owner: Broadcast

        fileprivate init(
            _ owner: Broadcast, _ number: UInt64, _ first: Value?, hasFinished: Bool, notify: (@Sendable () -> Void)?
        ) {
            self.owner = owner
            self.number = number
            self.notify = notify
            place = ReaderPlace(first, hasFinished: hasFinished)
        }

        deinit { owner.remove(number) }

        /// Takes the value that waits, if any.
        package func take() -> Value? { place.take() }

        /// Whether a value waits.
        package var hasValue: Bool { place.hasValue }

        /// The next value; `nil` when there will be none, or the task is cancelled. One task at a time may wait: another one takes
        /// the place of the first, which gets `nil`.
        package func next() async -> Value? { await place.next() }

        fileprivate func offer(_ value: Value) {
            if place.offer(value, merging: { value.following($0) }) == .waits { notify?() }
        }

        fileprivate func finish() { place.finish() }
    }

    private struct Place: Sendable {
        let number: UInt64
        weak var subscription: Subscription?
    }

    private struct State: Sendable {
        var latest: Value?
        // In the order of their subscription, which is that of delivery.
        var places: [Place] = []
        var nextNumber: UInt64 = 0
        var hasFinished = false
    }

    private let state: Locked<State>

    /// `present`: what is so before anything is published.
    package init(_ present: Value? = nil) { state = Locked(State(latest: present)) }

    /// The value published last.
    package var latest: Value? { state.withLock { $0.latest } }

    /// How many subscribe now.
    package var subscriberCount: Int { state.withLock { $0.places.count } }

    /// Subscribes; the present, where there is one, is the first value, unless it is left out. `notify` is called by the publisher when a
    /// later value begins to wait, and must not block.
    package func subscribe(withPresent: Bool = true, notify: (@Sendable () -> Void)? = nil) -> Subscription {
        state.withLock { state in
            let number = state.nextNumber
            state.nextNumber += 1
            let first = withPresent ? state.latest?.asInitial() : nil
            let subscription = Subscription(self, number, first, hasFinished: state.hasFinished, notify: notify)
            state.places.append(Place(number: number, subscription: subscription))
            return subscription
        }
    }

    /// Publishes a value.
    package func publish(_ value: Value) {
        let (subscriptions, former) = state.withLock { state in
            (state.places.compactMap(\.subscription), value.accumulate(into: &state.latest))
        }
        for subscription in subscriptions { subscription.offer(value) }
        // Freed when the subscribers are on their way.
        _ = consume former
    }

    /// Nothing will be published any more: waiting readers end, after the value that waits for them.
    package func finish() {
        let subscriptions = state.withLock { state in
            state.hasFinished = true
            return state.places.compactMap(\.subscription)
        }
        for subscription in subscriptions { subscription.finish() }
    }

    private func remove(_ number: UInt64) { state.withLock { $0.places.removeAll { $0.number == number } } }
}
