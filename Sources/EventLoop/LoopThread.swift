internal import CLinux
internal import Glibc

/// A thread of its own for a loop, inside a network namespace where one is named.
///
/// A network namespace belongs to a thread (setns(2)), so whatever opens sockets in it runs on such a thread. What such a thread has
/// for others to do it gives to ``HomeThread``.
package final class LoopThread: Sendable {
    /// Why the thread could not do its work.
    package enum StartError: Error, Hashable, Sendable {
        /// The namespace's file could not be opened or is no network namespace.
        case noNamespace(errno: Int32)
        /// The namespace may not be entered.
        case notPermitted
        /// Another call failed.
        case system(LoopError)

        /// What an errno of open(2) says of a namespace's file: a process without descriptors left says nothing of it.
        init(opening number: Int32) {
            switch number {
            case EACCES, EPERM: self = .notPermitted
            case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: self = .noNamespace(errno: number)
            default: self = .system(LoopError(call: "open", errno: number))
            }
        }
    }

    // Filled by the thread itself, read by whoever waits for it.
    private final class Start: Sendable {
        let result = Locked<Result<Void, StartError>?>(nil)
        let name: String
        let namespace: String?
        let prepare: @Sendable () throws(LoopError) -> () -> Void
        let signal: Waker
        /// A thread is where its maker is.
        let isElsewhere = HomeThread.isElsewhere
        /// Claimed by who gives the thread back to the system: itself at its end, or who waits for that.
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

    /// Starts the thread and waits until `prepare` has run on it, inside the namespace; what `prepare` returns is then the
    /// thread's work, and the thread ends with it.
    ///
    /// - Parameters:
    ///   - name: at most 15 bytes, for debuggers and `ps -L`.
    ///   - namespace: the path of a network namespace's file; `nil` to stay in that of the caller.
    ///   - prepare: makes the thread's work, on the thread.
    /// - Throws: what the system refused, or what `prepare` threw.
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
                // Nobody may ever wait for it, though its LoopThread is still held.
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

    /// Whether it is asked on the thread itself.
    package var isCurrent: Bool { pthread_equal(pthread_self(), handle) != 0 }

    /// Waits for the end of the thread's work. From the thread itself it returns at once.
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

    /// - Returns: whether it had not been claimed.
    private static func claim(_ isClaimed: Locked<Bool>) -> Bool {
        isClaimed.withLock { isClaimed in
            defer { isClaimed = true }
            return !isClaimed
        }
    }

    private static func run(_ start: Start) {
        // Signals are the program's business: they go to the threads that it made itself.
        var all = sigset_t()
        sigfillset(&all)
        // A thread's own crash is not: the kernel ends the process at once, without its handler, if the thread has blocked the signal.
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
        // The C library keeps what dlsym(3) said last until the very end of the thread, behind the point up to which LeakSanitizer knows the
        // thread: it seemed lost where the program ended just then. Swift's runtime looks in vain for a function when it makes its first task.
        // The second call frees it.
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
