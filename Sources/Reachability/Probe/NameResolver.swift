internal import CLinux
package import EventLoop
internal import Glibc
internal import Pacing

/// Resolves names by getaddrinfo(3) on a few threads of its own, inside the network namespace that is watched.
///
/// getaddrinfo blocks and cannot be called back, so it gets threads that nothing waits for: they are made when there is work, end
/// after ``idleTime`` without any, and are left to themselves when ``stop()`` finds them inside a call.
///
/// For a *named* namespace the threads see `/etc/netns/NAME/` as ip-netns(8) arranges it (``NamespaceFiles``); what became of
/// that is in ``files``.
package final class NameResolver: Sendable {
    /// How many names are resolved at once by default. A silent name server holds a thread for ten seconds, three times as long as
    /// a probe lasts, and who finds all threads held has waited in vain.
    package static let defaultThreads = 16
    /// How many names wait at most; more are answered with EAI_AGAIN at once. A target has one name waiting at a time, so this
    /// bounds nothing but a mistake.
    package static let queueLimit = 65_536
    /// At most this many addresses are given for a name.
    package static let addressLimit = 16
    /// A thread without work ends after this: longer than the usual interval between probes.
    package static let idleTime = Duration.seconds(30)

    private struct State {
        var queue: LookupQueue
        /// Wakes the threads of the present generation, and no others: each of them that ends wakes the next.
        var signal: Waker
        var files = NamespaceFiles.Outcome.notAsked
    }

    // What the threads share. They hold it, not the resolver, so that a stuck one keeps nothing else alive.
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

    /// A resolver without threads yet.
    ///
    /// - Parameters:
    ///   - namespace: where names are resolved; `nil` for the namespace of the process. Its file is opened now, so that threads
    ///     made later enter the same namespace even when the name stands for another by then.
    ///   - filesDirectory: replaces `/etc/netns/NAME`.
    ///   - threads: how many names are resolved at once.
    ///   - queue: how many wait at most.
    ///   - sink: called on a thread of the resolver with each answer, and on the caller's with an answer that is known at once.
    /// - Throws: `LoopError` when no descriptor is to be had.
    package init(
        namespace: NetworkNamespace?, filesDirectory: String? = nil, threads: Int = NameResolver.defaultThreads,
        queue: Int = NameResolver.queueLimit, sink: @escaping @Sendable (LookupAnswer) -> Void
    ) throws(LoopError) {
        let descriptor = namespace.map { open($0.path, O_RDONLY | O_CLOEXEC) } ?? -1
        do {
            work = try Work(
                LookupQueue(threadLimit: threads, queueLimit: queue),
                directory: filesDirectory ?? namespace?.name.map { "/etc/netns/\($0)" },
                // Where the file cannot be opened, the threads say why.
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

    /// Whose configuration the names are resolved with, as far as a thread has found out.
    package var files: NamespaceFiles.Outcome { work.state.withLock { $0.files } }

    /// Has a name resolved; the answer comes by the sink.
    package func resolve(_ request: LookupRequest) {
        let (admission, signal) = work.state.withLock { ($0.queue.add(request), $0.signal) }
        switch admission {
        case .ignore: break
        case .wake: signal.wake()
        case .refuse: work.sink(LookupAnswer(id: request.id, code: EAI_AGAIN))
        case .makeThread(let generation): Self.makeThread(work, generation, signal)
        }
    }

    /// Drops what waits for a target. An answer that is under way may still come.
    package func cancel(_ target: TargetID) { work.state.withLock { $0.queue.cancel(target) } }

    /// The configuration's files may be others now. A thread of a named namespace has the former ones mounted, so it ends, after the
    /// lookup that it is in, and another takes its place.
    package func configurationChanged() {
        guard work.directory != nil else { return }
        // Without a descriptor for a signal of their own, the new threads have to share that of the former ones.
        let fresh = try? Waker()
        let (former, signal, generation) = work.state.withLock { state in
            let former = state.signal
            if let fresh { state.signal = fresh }
            return (former, state.signal, state.queue.beginGeneration())
        }
        former.wake()
        // Not made by one of the former ones: it would inherit its mounts.
        if let generation { Self.makeThread(work, generation, signal) }
    }

    /// Ends the threads that have no work and forgets what waits. Returns at once; a thread inside a call ends with it, and what
    /// it finds is dropped. An answer that is already on its way to the sink may still come.
    package func stop() {
        let signal = work.state.withLock { state in
            state.queue.stop()
            return state.signal
        }
        signal.wake()
    }

    // The generation is that in which the thread was counted: by the time that it runs there may be another.
    private static func makeThread(_ work: Work, _ generation: Int, _ signal: Waker) {
        do {
            // The value is dropped, which detaches the thread.
            _ = try LoopThread(name: "resolver", namespace: work.namespacePath) { { Self.run(work, generation, signal) } }
        } catch {
            let stranded = work.state.withLock { $0.queue.lose(of: generation) }
            let number: Int32 =
                switch error {
                case .notPermitted: EPERM
                case .noNamespace(let number): number
                case .system(let error): error.errno
                }
            for request in stranded { work.sink(LookupAnswer(id: request.id, code: EAI_SYSTEM, errno: number)) }
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
        // The others learn of the end from each other: one wake-up wakes one thread for certain.
        signal.wake()
    }

    /// The next request; `nil` when the thread shall end.
    private static func next(_ work: Work, _ generation: Int, _ signal: Waker) -> LookupRequest? {
        var (wasIdle, timedOut) = (false, false)
        // From the last lookup on: a wake-up whose request another thread took is no work.
        let end = MonotonicClock.now().addingSaturated(idleTime.saturatingNanoseconds)
        while true {
            switch work.state.withLock({ $0.queue.next(of: generation, wasIdle: wasIdle, timedOut: timedOut) }) {
            case .take(let request, let more):
                if more { signal.wake() }
                return request
            case .end:
                return nil
            case .wait:
                var poller = pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)
                let left = max(0, end - MonotonicClock.now())
                let count = poll(&poller, 1, Int32(clamping: (left + 999_999) / 1_000_000))
                if count > 0 { signal.acknowledge() }
                (wasIdle, timedOut) = (true, count == 0 || left == 0)
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
        // With EAI_AGAIN glibc sets errno to EAGAIN, whether the name server was silent, refused or failed.
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
