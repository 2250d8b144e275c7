internal import CLinux
internal import Glibc

/// A thread that runs one loop, inside a network namespace if one is given.
///
/// A network namespace belongs to a thread (setns(2)), so code that opens sockets in it runs on such a thread. To wake other
/// threads, such a thread uses ``HomeThread``.
package final class LoopThread: Sendable {
    /// The reason why the thread could not start.
    package enum StartError: Error, Hashable, Sendable {
        /// The namespace's file cannot be opened or is not a network namespace.
        case noNamespace(errno: Int32)
        /// The process has no permission to enter the namespace.
        case notPermitted
        /// Another system call failed.
        case system(LoopError)

        /// Creates the error for an errno of open(2) on a namespace's file. EMFILE, for example, says nothing about the file.
        init(opening number: Int32) {
            switch number {
            case EACCES, EPERM: self = .notPermitted
            case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: self = .noNamespace(errno: number)
            default: self = .system(LoopError(call: "open", errno: number))
            }
        }
    }

    // Written by the new thread, read by the thread that waits for its start.
    private final class Start: Sendable {
        let result = Locked<Result<Void, StartError>?>(nil)
        let name: String
        let namespace: String?
        let prepare: @Sendable () throws(LoopError) -> () -> Void
        let signal: Waker
        /// Whether the creating thread has left the initial namespaces, which the new thread inherits.
        let isElsewhere = HomeThread.isElsewhere
        /// Whether somebody has taken over the release of the thread's resources: the thread itself at its end, or the thread
        /// that joins it.
        let isClaimed = Locked(false)

        init(
            name: String, namespace: String?, prepare: @escaping @Sendable () throws(LoopError) -> () -> Void
        ) throws(LoopError) {
            self.name = name
            self.namespace = namespace
            self.prepare = prepare
            signal = try Waker()
        }

        func finish(_ outcome: Result<Void, StartError>) {
            result.withLock { $0 = outcome }
            signal.wake()
        }
    }

    private let handle: pthread_t
    private let isClaimed: Locked<Bool>

    /// Starts the thread and waits until `prepare` has run on it, inside the namespace. The thread then runs the closure that
    /// `prepare` returned, and ends when the closure returns.
    ///
    /// - Parameters:
    ///   - name: The thread's name for debuggers and `ps -L`, at most 15 bytes.
    ///   - namespace: The path of a network namespace's file; `nil` to stay in the caller's namespace.
    ///   - prepare: Called on the new thread; returns the thread's work.
    /// - Throws: The failed system call, or the error that `prepare` threw.
    package init(
        name: String, namespace: String?,
        prepare: @escaping @Sendable () throws(LoopError) -> () -> Void
    ) throws(StartError) {
        let start: Start
        do { start = try Start(name: name, namespace: namespace, prepare: prepare) } catch { throw .system(error) }
        var handle = pthread_t()
        let number = pthread_create(
            &handle, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument)
                let isClaimed = start.takeUnretainedValue().isClaimed
                LoopThread.run(start.takeRetainedValue())
                // It may never be joined, even while its LoopThread is still referenced.
                if LoopThread.claim(isClaimed) { pthread_detach(pthread_self()) }
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        guard number == 0 else { throw .system(LoopError(call: "pthread_create", errno: number)) }
        self.handle = handle
        isClaimed = start.isClaimed
        var poller = pollfd(fd: start.signal.descriptor, events: Int16(POLLIN), revents: 0)
        while start.result.withLock({ $0 == nil }) { _ = poll(&poller, 1, -1) }
        if case .failure(let error) = start.result.withLock({ $0 }) {
            join()
            throw error
        }
    }

    /// Whether the caller runs on this thread.
    package var isCurrent: Bool { pthread_equal(pthread_self(), handle) != 0 }

    /// Waits for the end of the thread's work. On the thread itself it returns at once.
    package func join() {
        guard LoopThread.claim(isClaimed) else { return }
        if isCurrent {
            pthread_detach(handle)
        } else {
            pthread_join(handle, nil)
        }
    }

    deinit {
        if LoopThread.claim(isClaimed) { pthread_detach(handle) }
    }

    /// - Returns: Whether it had not been claimed before.
    private static func claim(_ isClaimed: Locked<Bool>) -> Bool {
        isClaimed.withLock { isClaimed in
            defer { isClaimed = true }
            return !isClaimed
        }
    }

    private static func run(_ start: Start) {
        // Signals are delivered to the threads that the program itself created.
        var all = sigset_t()
        sigfillset(&all)
        // Crash signals stay unblocked: if a thread has blocked the signal, the kernel ends the process at once, without its
        // handler.
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] { sigdelset(&all, number) }
        pthread_sigmask(SIG_BLOCK, &all, nil)
        netwatch_set_thread_name(start.name)
        if start.isElsewhere || start.namespace != nil {
            do { try HomeThread.leave() } catch { return start.finish(.failure(error)) }
        }
        if let path = start.namespace, case .failure(let error) = enter(path) { return start.finish(.failure(error)) }
        let work: () -> Void
        do { work = try start.prepare() } catch { return start.finish(.failure(.system(error))) }
        start.finish(.success(()))
        work()
        // glibc keeps the last error of dlsym(3) until the very end of the thread, when LeakSanitizer no longer knows the
        // thread. If the program ended just then, the error looked leaked. Swift's runtime causes such an error when it creates
        // its first task: it looks up a function that does not exist. The second call of dlerror(3) frees the error.
        for _ in 0..<2 { _ = dlerror() }
    }

    private static func enter(_ path: String) -> Result<Void, StartError> {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            return .failure(StartError(opening: errno))
        }
        defer { close(descriptor) }
        guard setns(descriptor, netwatch_CLONE_NEWNET) == 0 else {
            switch errno {
            case EPERM: return .failure(.notPermitted)
            case EINVAL: return .failure(.noNamespace(errno: EINVAL))
            default: return .failure(.system(LoopError(call: "setns", errno: errno)))
            }
        }
        return .success(())
    }
}
