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
        let callback = call(body) { [weak delivery] job in
            HomeThread.run { [delivery] in
                if let queue { queue.async(execute: job) } else { delivery?.run(job) }
            }
        }
        return CallbackToken {
            callback.end()
            _ = owner
        }
    }
}
