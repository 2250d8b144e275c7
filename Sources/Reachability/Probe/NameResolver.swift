internal import CLinux
package import EventLoop
internal import Glibc
internal import Pacing

/// Resolves names with getaddrinfo(3) on a few dedicated threads inside the monitored network namespace.
///
/// getaddrinfo blocks and cannot be canceled. Its threads are created when names are waiting, and end after ``idleTime`` without
/// work. ``stop()`` does not wait for a thread inside a call.
///
/// For a *named* namespace, the threads use the files of `/etc/netns/NAME/`, as ip-netns(8) arranges them (``NamespaceFiles``).
/// ``files`` is the outcome.
package final class NameResolver: Sendable {
    /// The default number of names resolved at the same time. A silent name server blocks a thread for ten seconds, three times
    /// as long as a probe. A name for which no thread is free misses its probe's deadline.
    package static let defaultThreads = 16
    /// The maximum number of waiting names. Further names are answered with EAI_AGAIN at once. A target has at most one waiting
    /// name, so only a mistake reaches this limit.
    package static let queueLimit = 65_536
    /// The maximum number of addresses in an answer.
    package static let addressLimit = 16
    /// The time after which a thread without work ends: longer than the usual interval between probes.
    package static let idleTime = Duration.seconds(30)

    private struct State {
        var queue: LookupQueue
        /// Wakes only the threads of the present generation. Each thread that ends wakes the next.
        var signal: Waker
        var files = NamespaceFiles.Outcome.notAsked
    }

    // The state that the threads share. The threads retain it, and not the resolver, so that a blocked thread keeps nothing else
    // alive.
    private final class Work: Sendable {
        let state: Locked<State>
        let directory: String?
        let namespacePath: String?
        let sink: @Sendable (LookupAnswer) -> Void

        init(
            _ queue: LookupQueue, directory: String?, namespacePath: String?, sink: @escaping @Sendable (LookupAnswer) -> Void
        ) throws(LoopError) {
            state = Locked(State(queue: queue, signal: try Waker()))
            self.directory = directory
            self.namespacePath = namespacePath
            self.sink = sink
        }
    }

    private let work: Work
    private let namespaceDescriptor: Int32

    /// Creates a resolver without threads.
    ///
    /// - Parameters:
    ///   - namespace: the namespace in which names are resolved; `nil` for the namespace of the process. Its file is opened now:
    ///     later threads enter the same namespace, even if the name then refers to another one.
    ///   - filesDirectory: replaces `/etc/netns/NAME`.
    ///   - threads: the number of names resolved at the same time.
    ///   - queue: the maximum number of waiting names.
    ///   - sink: receives each answer on a thread of the resolver, or on the caller's thread if the answer is known at once.
    /// - Throws: `LoopError` if no descriptor is available.
    package init(
        namespace: NetworkNamespace?, filesDirectory: String? = nil, threads: Int = NameResolver.defaultThreads,
        queue: Int = NameResolver.queueLimit, sink: @escaping @Sendable (LookupAnswer) -> Void
    ) throws(LoopError) {
        let descriptor = namespace.map { open($0.path, O_RDONLY | O_CLOEXEC) } ?? -1
        do {
            work = try Work(
                LookupQueue(threadLimit: threads, queueLimit: queue),
                directory: filesDirectory ?? namespace?.name.map { "/etc/netns/\($0)" },
                // If the file cannot be opened, the threads report the reason.
                namespacePath: descriptor >= 0 ? "/proc/self/fd/\(descriptor)" : namespace?.path, sink: sink
            )
        } catch {
            if descriptor >= 0 { close(descriptor) }
            throw error
        }
        namespaceDescriptor = descriptor
    }

    deinit {
        stop()
        if namespaceDescriptor >= 0 { close(namespaceDescriptor) }
    }

    /// The files with which names are resolved, as a thread has determined them.
    package var files: NamespaceFiles.Outcome { work.state.withLock { $0.files } }

    /// Resolves a name. The sink receives the answer.
    package func resolve(_ request: LookupRequest) {
        let (admission, signal) = work.state.withLock { ($0.queue.add(request), $0.signal) }
        switch admission {
        case .ignore: break
        case .wake: signal.wake()
        case .refuse: work.sink(LookupAnswer(id: request.id, code: EAI_AGAIN))
        case .makeThread(let generation): Self.makeThread(work, generation, signal)
        }
    }

    /// Removes the waiting name of a target. The answer of a running lookup may still arrive.
    package func cancel(_ target: TargetID) { work.state.withLock { $0.queue.cancel(target) } }

    /// Handles a possible change of the configuration's files. A thread of a named namespace has the former files mounted, so it
    /// ends after its present lookup, and another thread replaces it.
    package func configurationChanged() {
        guard work.directory != nil else { return }
        // Without a descriptor for a new signal, the new threads share the signal of the former ones.
        let fresh = try? Waker()
        let (former, signal, generation) = work.state.withLock { state in
            let former = state.signal
            if let fresh { state.signal = fresh }
            return (former, state.signal, state.queue.beginGeneration())
        }
        former.wake()
        // The thread is not created by a former one, because it would inherit its mounts.
        if let generation { Self.makeThread(work, generation, signal) }
    }

    /// Ends the threads without work, and removes the waiting names. Returns at once. A thread inside a call ends after it, and
    /// its answer is dropped. An answer that is already on its way to the sink may still arrive.
    package func stop() {
        let signal = work.state.withLock { state in
            state.queue.stop()
            return state.signal
        }
        signal.wake()
    }

    // `generation` is the one in which the thread was counted. When the thread starts, there may be a newer one.
    private static func makeThread(_ work: Work, _ generation: Int, _ signal: Waker) {
        do {
            // The returned value is discarded, which detaches the thread.
            _ = try LoopThread(name: "resolver", namespace: work.namespacePath) { { Self.run(work, generation, signal) } }
        } catch {
            let unanswered = work.state.withLock { $0.queue.threadFailed(of: generation) }
            let number: Int32 =
                switch error {
                case .notPermitted: EPERM
                case .noNamespace(let number): number
                case .system(let error): error.errno
                }
            for request in unanswered { work.sink(LookupAnswer(id: request.id, code: EAI_SYSTEM, errno: number)) }
        }
    }
}

extension NameResolver {
    private static func run(_ work: Work, _ generation: Int, _ signal: Waker) {
        if let directory = work.directory {
            let outcome = NamespaceFiles.arrange(from: directory)
            work.state.withLock { $0.files = outcome }
        }
        while let request = next(work, generation, signal) {
            let answer = lookUp(request)
            if work.state.withLock({ $0.queue.isStopped }) { break }
            work.sink(answer)
        }
        // The other threads learn of the end from each other, because one wake-up reliably wakes only one thread.
        signal.wake()
    }

    /// Returns the next request; `nil` if the thread must end.
    private static func next(_ work: Work, _ generation: Int, _ signal: Waker) -> LookupRequest? {
        var (wasIdle, timedOut) = (false, false)
        // Measured from the last lookup: a wake-up whose request another thread took does not count as work.
        let end = MonotonicClock.now().addingSaturated(idleTime.saturatingNanoseconds)
        while true {
            switch work.state.withLock({ $0.queue.next(of: generation, wasIdle: wasIdle, timedOut: timedOut) }) {
            case .lookUp(let request, let more):
                if more { signal.wake() }
                return request
            case .end:
                return nil
            case .wait:
                var poller = pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)
                let timeRemaining = max(0, end - MonotonicClock.now())
                let count = poll(&poller, 1, Int32(clamping: (timeRemaining + 999_999) / 1_000_000))
                if count > 0 { signal.acknowledge() }
                (wasIdle, timedOut) = (true, count == 0 || timeRemaining == 0)
            }
        }
    }

    private static func lookUp(_ request: LookupRequest) -> LookupAnswer {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_family =
            switch (request.families.contains(.v4), request.families.contains(.v6)) {
            case (true, false): AF_INET
            case (false, true): AF_INET6
            default: AF_UNSPEC
            }
        let started = MonotonicClock.now()
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(request.name, nil, &hints, &list)
        let number = errno
        defer { list.map { freeaddrinfo($0) } }
        var answer = LookupAnswer(id: request.id, code: code, elapsedNanoseconds: MonotonicClock.now() - started)
        // With EAI_AGAIN, glibc sets errno to EAGAIN for a silent, refusing or failing name server alike.
        if code == EAI_SYSTEM { answer.errno = number }
        var entry = code == 0 ? list : nil
        while let info = entry?.pointee, answer.addresses.count < addressLimit {
            if let address = address(of: info)?.unmapped, !answer.addresses.contains(address) { answer.addresses.append(address) }
            entry = info.ai_next
        }
        return answer
    }

    private static func address(of info: addrinfo) -> IPAddress? {
        let bytes = UnsafeRawBufferPointer(start: info.ai_addr, count: info.ai_addr == nil ? 0 : Int(info.ai_addrlen))
        switch info.ai_family {
        case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
            return IPAddress(bytes: withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) })
        case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
            return IPAddress(bytes: withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) })
        default:
            return nil
        }
    }
}
