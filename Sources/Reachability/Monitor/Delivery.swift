internal import Dispatch
internal import EventLoop
internal import Glibc

/// Runs user code on a thread of its own, made when first needed: never on the thread that watches the kernel.
final class Delivery: Sendable {
    private let worker = Locked<Worker?>(nil)

    /// Runs the job after those before it. At most one job of each subscription waits, so the queue is bounded by their number.
    func run(_ job: @escaping @Sendable () -> Void) {
        let worker = worker.withLock { worker in
            if worker == nil { worker = try? Worker(name: "nw-delivery") }
            return worker
        }
        // A worker needs a descriptor. A plain thread needs none; dispatch's first queue does too, and ends the process for want of it.
        if let worker { worker.run(job) } else { Delivery.runOnPlainThread(job) }
    }

    private final class Job {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private static func runOnPlainThread(_ job: @escaping @Sendable () -> Void) {
        let argument = Unmanaged.passRetained(Job(job))
        var thread = pthread_t()
        let number = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, argument.toOpaque())
        guard number == 0 else {
            argument.release()
            return DispatchQueue.global().async(execute: job)
        }
        pthread_detach(thread)
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
            HomeThread.run { [delivery] in
                if let queue { queue.async(execute: job) } else { delivery?.run(job) }
            }
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
