internal import Dispatch
internal import EventLoop

/// Runs user code on a thread of its own, made when first needed: never on the thread that watches the kernel.
final class Delivery: Sendable {
    private struct State: Sendable {
        var jobs: [@Sendable () -> Void] = []
        var hasEnded = false
    }

    // Shared with the thread, which must not keep the delivery itself alive.
    private final class Shared: Sendable {
        let state = Locked(State())
        let waker: Waker

        init(_ waker: Waker) { self.waker = waker }
    }

    private let shared = Locked<Shared?>(nil)

    deinit {
        guard let shared = shared.withLock({ $0 }) else { return }
        shared.state.withLock { $0.hasEnded = true }
        shared.waker.wake()
    }

    /// Runs the job after those before it. At most one job of each subscription waits, so the queue is bounded by their number.
    func run(_ job: @escaping @Sendable () -> Void) {
        guard let shared = started() else { return DispatchQueue.global().async(execute: job) }
        let isFirst = shared.state.withLock { state in
            state.jobs.append(job)
            return state.jobs.count == 1
        }
        if isFirst { shared.waker.wake() }
    }

    // Where no thread can be had, dispatch's own serve.
    private func started() -> Shared? {
        shared.withLock { shared in
            if let shared { return shared }
            guard let waker = try? Waker(blocks: true) else { return nil }
            let new = Shared(waker)
            guard (try? LoopThread(name: "nw-delivery", namespace: nil) { { Delivery.serve(new) } }) != nil else { return nil }
            shared = new
            return new
        }
    }

    private static func serve(_ shared: Shared) {
        while true {
            let (jobs, hasEnded) = shared.state.withLock { state in
                defer { state.jobs = [] }
                return (state.jobs, state.hasEnded)
            }
            for job in jobs { job() }
            if jobs.isEmpty {
                if hasEnded { return }
                shared.waker.waitAndAcknowledge()
            }
        }
    }
}

extension Broadcast {
    /// Calls `body` with each value, or with one that stands for several, on `queue` or, without one, through `delivery`; one
    /// call at a time. `owner` is kept while the token lives.
    func deliver(
        on queue: DispatchQueue?, through delivery: Delivery, keeping owner: any Sendable,
        _ body: @escaping @Sendable (Value) -> Void
    ) -> CallbackToken {
        let callback = Callback(body)
        let job: @Sendable () -> Void = { [weak callback] in callback?.call() }
        let schedule: @Sendable () -> Void = { [weak delivery] in
            if let queue { queue.async(execute: job) } else { delivery?.run(job) }
        }
        callback.attach(subscribe(notify: schedule))
        // The first value may have been told before the subscription was attached.
        schedule()
        return CallbackToken {
            callback.end()
            _ = owner
        }
    }

    /// A callback with its subscription; calls never overlap, also on a concurrent queue.
    private final class Callback: Sendable {
        private struct State: Sendable {
            var subscription: Subscription?
            var isCalling = false
        }

        private let state = Locked(State())
        private let body: @Sendable (Value) -> Void

        init(_ body: @escaping @Sendable (Value) -> Void) { self.body = body }

        func attach(_ subscription: Subscription) { state.withLock { $0.subscription = subscription } }

        func end() {
            // Dropped outside the lock: it takes the broadcast's.
            let subscription = state.withLock { state in
                defer { state.subscription = nil }
                return state.subscription
            }
            _ = consume subscription
        }

        // Whoever is in a call takes what comes meanwhile as well.
        func call() {
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
