internal import Dispatch
internal import EventLoop
internal import Glibc

/// Runs user code on a separate thread, which the first subscriber's thread creates. User code never runs on the thread that
/// monitors the kernel.
final class Delivery: Sendable {
    private let worker = Locked<Worker?>(nil)

    /// Creates the thread, unless it exists or the current thread has left the initial namespaces, which the thread would inherit.
    func start() {
        guard !HomeThread.isElsewhere, worker.withLock({ $0 == nil }) else { return }
        // Created outside the lock, for which publishers would wait. If two subscribers create a thread, one of them ends here.
        guard let created = try? Worker(name: "nw-delivery") else { return }
        worker.withLock { $0 = $0 ?? created }
    }

    /// Runs a job after earlier jobs, as ``run(_:)`` does, from any thread: to wake a thread that exists needs no ``HomeThread``.
    func post(_ job: @escaping @Sendable () -> Void) {
        if let worker = worker.withLock({ $0 }) {
            worker.run(job)
        } else {
            HomeThread.run { self.run(job) }
        }
    }

    /// Runs a job after earlier jobs. Each subscription has at most one waiting job, so the number of subscriptions bounds the
    /// queue.
    func run(_ job: @escaping @Sendable () -> Void) {
        let worker = worker.withLock { worker in
            if worker == nil { worker = try? Worker(name: "nw-delivery") }
            return worker
        }
        // A worker needs a descriptor. Dispatch's first queue needs one too, and ends the process if none is free; a plain thread
        // needs none.
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
    /// Calls `body` with each value, or with one value that combines several, one call at a time. Calls run on `queue`, or
    /// through `delivery` if `queue` is `nil`. The token retains `owner`.
    func deliver(
        on queue: DispatchQueue?, through delivery: Delivery, keeping owner: any Sendable,
        _ body: @escaping @Sendable (Value) -> Void
    ) -> CallbackToken {
        if queue == nil { delivery.start() }
        let callback = call(body) { [weak delivery] job in
            if let queue { HomeThread.run { queue.async(execute: job) } } else { delivery?.post(job) }
        }
        return CallbackToken {
            callback.end()
            _ = owner
        }
    }
}
