internal import Glibc

/// A thread that stays in the process's initial network namespace and mount namespace. Threads that have left these use it to
/// wake others.
///
/// A new thread inherits the namespaces of the thread that creates it (clone(2)). Dispatch creates the threads of its queues, and
/// with them those of Swift's tasks, on the thread that submits work. If a loop inside another namespace resumed a task or
/// submitted a block, the process's pool would get threads in that namespace. These threads would open every later socket there.
/// So one thread that never left does all work that may wake others. It is created by the first thread that leaves, before it
/// leaves.
package enum HomeThread {
    private static let worker = Locked<Worker?>(nil)

    // Set on a thread that has left; the value has no meaning.
    private static let mark: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Whether the current thread, or the thread that created it, has left the initial namespaces.
    package static var isElsewhere: Bool { pthread_getspecific(mark) != nil }

    /// Marks the current thread as one that leaves the initial namespaces. Call it before the thread leaves, or if the thread
    /// that created it has left.
    package static func leave() throws(LoopThread.StartError) {
        guard !isElsewhere else { return }
        // If the creating thread has left, it has called this function, so the worker exists and is in the initial namespaces.
        try worker.withLock { worker throws(LoopThread.StartError) in
            if worker == nil { worker = try Worker(name: "home") }
        }
        pthread_setspecific(mark, UnsafeRawPointer(bitPattern: 1))
    }

    /// Runs `body`, which wakes others: it resumes a task, submits a block to a queue, or yields to a stream. It must not block.
    ///
    /// If the current thread has not left the initial namespaces, `body` runs at once. Otherwise it runs soon on the home
    /// thread, after the earlier bodies of the same thread.
    package static func run(_ body: @escaping @Sendable () -> Void) {
        if isElsewhere { relay(body) } else { body() }
    }

    /// Runs `body` on the home thread, whether or not the current thread has left: bodies of several threads keep their order.
    package static func relay(_ body: @escaping @Sendable () -> Void) {
        // The worker does not exist if no thread has left.
        if let worker = worker.withLock({ $0 }) { worker.run(body) } else { body() }
    }
}
