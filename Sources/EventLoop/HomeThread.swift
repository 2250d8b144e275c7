internal import Glibc

/// Where threads that have left the process's network namespace, or its mounts, let others be woken.
///
/// A new thread is in the namespace of whoever makes it (clone(2)). Dispatch makes the threads of its queues, and with them those of
/// Swift's tasks, on the thread that has something for them to do: a loop inside a namespace that resumed a task, or gave a queue a
/// block, would leave behind threads of the process's pool that open every later socket in that namespace. So whatever may wake others
/// is done by one thread that never left. It is where the first thread that left was made.
package enum HomeThread {
    private static let worker = Locked<Worker?>(nil)

    // Whether the present thread has left; its value is of no meaning.
    private static let mark: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Whether the present thread, or the one that made it, has left.
    package static var isElsewhere: Bool { pthread_getspecific(mark) != nil }

    /// To be called on a thread before it leaves, or that was made by one that has left.
    package static func leave() throws(LoopThread.StartError) {
        guard !isElsewhere else { return }
        // Whoever was made elsewhere has a maker that has called this: the worker is there, and is at home.
        try worker.withLock { worker throws(LoopThread.StartError) in
            if worker == nil { worker = try Worker(name: "home") }
        }
        pthread_setspecific(mark, UnsafeRawPointer(bitPattern: 1))
    }

    /// Runs `body`, which wakes others: resumes a task, gives a queue a block, yields to a stream. On a thread that has not left that is
    /// at once; otherwise soon, on one that has not, after what was asked for before by the same thread. It must not wait.
    package static func run(_ body: @escaping @Sendable () -> Void) {
        if isElsewhere { relay(body) } else { body() }
    }

    /// As ``run(_:)`` on a thread that has left, whichever this one is: where what several threads ask for has to keep its order.
    package static func relay(_ body: @escaping @Sendable () -> Void) {
        // There is none where nobody has left.
        if let worker = worker.withLock({ $0 }) { worker.run(body) } else { body() }
    }
}
