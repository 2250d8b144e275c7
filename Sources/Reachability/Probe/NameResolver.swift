internal import CLinux
package import EventLoop
internal import Glibc

/// Resolves names by getaddrinfo(3) on a few threads of its own, inside the network namespace that is watched.
///
/// getaddrinfo blocks and cannot be called back, so it gets threads that nothing waits for: they are made when there is work, end
/// after ``idleTime`` without any, and are left to themselves when ``stop()`` finds them inside a call.
///
/// For a *named* namespace the threads see `/etc/netns/NAME/` as ip-netns(8) arranges it (``NamespaceFiles``); what became of
/// that is in ``files``.
package final class NameResolver: Sendable {
    /// How many names are resolved at once by default.
    package static let defaultThreads = 4
    /// How many names wait at most; more are answered with EAI_AGAIN at once. A target has one name waiting at a time, so this
    /// bounds nothing but a mistake.
    package static let queueLimit = 65_536
    /// At most this many addresses are given for a name.
    package static let addressLimit = 16
    /// A thread without work ends after this: longer than the usual interval between probes.
    package static let idleTime = Duration.seconds(30)

    private struct State {
        var waiting: [LookupRequest] = []
        var threads = 0
        var idle = 0
        var isStopped = false
        /// Counts the changes of the configuration; a thread of an older one ends.
        var generation = 0
        var files = NamespaceFiles.Outcome.notAsked
    }

    // What the threads share. They hold it, not the resolver, so that a stuck one keeps nothing else alive.
    private final class Work: Sendable {
        let state = Locked(State())
        let signal: Waker
        let directory: String?
        let namespacePath: String?
        let sink: @Sendable (LookupAnswer) -> Void

        init(
            directory: String?, namespacePath: String?, sink: @escaping @Sendable (LookupAnswer) -> Void
        ) throws(LoopError) {
            signal = try Waker()
            self.directory = directory
            self.namespacePath = namespacePath
            self.sink = sink
        }
    }

    private let work: Work
    private let threadLimit: Int
    private let queueLimit: Int
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
        threadLimit = max(1, threads)
        queueLimit = queue
        let descriptor = namespace.map { open($0.path, O_RDONLY | O_CLOEXEC) } ?? -1
        do {
            work = try Work(
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
        enum Step { case wake, makeThread, refuse, ignore }
        let step: Step = work.state.withLock { state in
            if state.isStopped { return .ignore }
            // The lower half of an id counts the lookups of one target: an older one has been given up.
            state.waiting.removeAll { $0.id >> 32 == request.id >> 32 }
            guard state.waiting.count < queueLimit else { return .refuse }
            state.waiting.append(request)
            guard state.waiting.count > state.idle, state.threads < threadLimit else { return .wake }
            state.threads += 1
            return .makeThread
        }
        switch step {
        case .ignore: break
        case .wake: work.signal.wake()
        case .refuse: work.sink(LookupAnswer(id: request.id, code: EAI_AGAIN))
        case .makeThread: Self.makeThread(work)
        }
    }

    /// The configuration's files may be others now. A thread of a named namespace has the former ones mounted, so it ends, after the
    /// lookup that it is in, and another takes its place.
    package func configurationChanged() {
        guard work.directory != nil else { return }
        // From here on the former threads count no more. The new one is not made by one of them: it would inherit its mounts.
        let isNeeded = work.state.withLock { state in
            state.generation += 1
            state.idle = 0
            state.threads = state.waiting.isEmpty || state.isStopped ? 0 : 1
            return state.threads == 1
        }
        work.signal.wake()
        if isNeeded { Self.makeThread(work) }
    }

    /// Ends the threads that have no work and forgets what waits. Returns at once; a thread inside a call ends with it, and what
    /// it finds is dropped. An answer that is already on its way to the sink may still come.
    package func stop() {
        work.state.withLock { state in
            state.isStopped = true
            state.waiting = []
        }
        work.signal.wake()
    }

    private static func makeThread(_ work: Work) {
        do {
            // The value is dropped, which detaches the thread.
            _ = try LoopThread(name: "resolver", namespace: work.namespacePath) { { Self.run(work) } }
        } catch {
            let stranded = work.state.withLock { state in
                state.threads -= 1
                guard state.threads == 0 else { return [LookupRequest]() }
                defer { state.waiting = [] }
                return state.waiting
            }
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
    private static func run(_ work: Work) {
        let generation = work.state.withLock { $0.generation }
        if let directory = work.directory {
            let outcome = NamespaceFiles.arrange(from: directory)
            work.state.withLock { $0.files = outcome }
        }
        while let request = next(work, generation) {
            let answer = lookUp(request)
            if work.state.withLock({ $0.isStopped }) { break }
            work.sink(answer)
        }
        // The others learn of the end from each other: one wake-up wakes one thread for certain.
        work.signal.wake()
    }

    /// The next request; `nil` when the thread shall end.
    private static func next(_ work: Work, _ generation: Int) -> LookupRequest? {
        enum Step { case take(LookupRequest, more: Bool), wait, end }
        var idles = false
        var waited = false
        while true {
            let step: Step = work.state.withLock { state in
                guard state.generation == generation else { return .end }
                if idles { state.idle -= 1 }
                idles = false
                if !state.isStopped, !state.waiting.isEmpty {
                    let request = state.waiting.removeFirst()
                    return .take(request, more: !state.waiting.isEmpty)
                }
                if state.isStopped || waited {
                    state.threads -= 1
                    return .end
                }
                state.idle += 1
                idles = true
                return .wait
            }
            switch step {
            case .take(let request, let more):
                if more { work.signal.wake() }
                return request
            case .end:
                return nil
            case .wait:
                var poller = pollfd(fd: work.signal.descriptor, events: Int16(POLLIN), revents: 0)
                let count = poll(&poller, 1, Int32(clamping: Self.idleTime.saturatingNanoseconds / 1_000_000))
                if count > 0 { work.signal.acknowledge() }
                waited = count == 0
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
            if let address = address(of: info), !answer.addresses.contains(address) { answer.addresses.append(address) }
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
