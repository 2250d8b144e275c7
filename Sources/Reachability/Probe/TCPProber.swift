internal import CLinux
internal import Certificates
package import EventLoop
internal import Glibc
internal import Pacing

/// Makes the TCP connections that the targets' machines request, on the loop's thread and inside its network namespace.
///
/// A probe is invisible to the server's program. The final ACK of the handshake is delayed (`TCP_QUICKACK` 0, tcp(7)), and
/// closing sends a reset (`SO_LINGER` with a time of 0, socket(7)). The server's kernel receives SYN and RST, its accept queue
/// stays empty, and neither side keeps a TIME_WAIT. The kernel delays the ACK by at most 200 ms (TCP_DELACK_MAX). If the loop is
/// later than that, the probe becomes an ordinary short connection.
///
/// Every failure, including those of this process, is a ``ProbeResult``; no method throws. The prober does not wait for the
/// kernel's timeouts: the machine cancels an attempt at its deadline.
package struct TCPProber: ~Copyable {
    /// The first token of the prober's descriptors. No token is used twice within 2³⁶ attempts.
    package static let firstToken: UInt64 = 1 << 32
    /// The default number of simultaneously open sockets: the process's limit (getrlimit(2), RLIMIT_NOFILE) minus the descriptors
    /// that are open, and a reserve for names and other work. Further attempts wait in a queue.
    package static var defaultLimit: Int { limit(for: DescriptorUse.now()) }

    /// The reserve is 64 descriptors, but at most a quarter of the free ones.
    static func limit(for use: DescriptorUse) -> Int {
        let free = max(use.limit - use.open, 0)
        return max(free - min(64, free / 4), 1)
    }

    /// The time in nanoseconds after which a limit that was lowered rises by an eighth.
    static let recoveryGap: Int64 = 1_000_000_000

    struct Connecting {
        var attempt: ProbeAttempt
        var socket: Int32
        let started: Moment
        var token: UInt64
        /// The levels on the connection; `nil` before it is established.
        var levels: Levels?
        /// Whether the connection counts as one of the unplaced handshakes.
        var isUnplaced = false
    }

    /// The levels of a connection that is established.
    struct Levels {
        let run: LevelRun
        /// The result of the connection.
        let connected: ProbeResult
        /// The bytes that the socket has not accepted yet.
        var output: [UInt8] = []
        var isWriting = false
        /// Whether the connection of a redirect is not established yet.
        var isConnecting = false
        /// Whether the TLS handshake waits for the end of others.
        var isWaiting = false
    }

    /// The maximum number of simultaneous TLS handshakes of attempts that began without a place: those after a redirect, at further
    /// addresses, and of targets that did not accept the last connection.
    static let unplacedHandshakeLimit = 128

    /// The maximum number of simultaneously open sockets. It is lowered when the system refuses a socket (EMFILE, ENFILE, ENOBUFS,
    /// ENOMEM), and rises again slowly, because other parts of the process may still use the descriptors.
    package private(set) var limit: Int
    private let ceiling: Int
    private var recoveryDue = Int64.max
    // A token is the number of an attempt, and in its lowest bits the attempt's slot.
    private static let slotBits: UInt64 = 26
    var slots: ContiguousArray<Connecting?> = []
    private var free: [Int] = []
    // The slots of running attempts, by their ids.
    private var connecting: [UInt64: Int] = [:]
    // Attempts start in order of arrival. The queue has the numbers of attempts; canceled ones are not in `queued` any more.
    private var waiting: [UInt64] = []
    private var queued: [UInt64: ProbeAttempt] = [:]
    // The earliest `latestStart` of the queue, so that the queue is searched only when an attempt has waited too long.
    private var earliestEnd = Int64.max
    // The slots of connections with levels, and the earliest end of their levels.
    var levelSlots: Set<Int> = []
    var earliestLevelEnd = Int64.max
    // The tokens of connections whose TLS handshakes wait, in order of arrival, and the number of those that run without a place.
    var waitingHandshakes: [UInt64] = []
    var unplacedHandshakes = 0
    /// The contexts of the last TLS probes, which would be released between two probes otherwise.
    var contexts: [TLSClientContext] = []
    private var started = TCPProber.firstToken >> TCPProber.slotBits

    /// Creates a prober without sockets. `limit` is the maximum number of simultaneously open sockets.
    package init(limit: Int = TCPProber.defaultLimit) {
        self.limit = max(limit, 1)
        ceiling = self.limit
    }

    deinit {
        for case let connection? in slots where connection.socket >= 0 { close(connection.socket) }
    }

    /// The number of running attempts.
    package var count: Int { connecting.count }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the prober.
    package static func owns(_ token: UInt64) -> Bool { token >= firstToken && token != .max }

    /// Starts an attempt, or queues the attempt if all sockets are in use.
    ///
    /// - Returns: the result if it is known at once, otherwise `nil`. Then ``ready(_:on:now:)`` or ``startWaiting(on:now:)``
    ///   returns the result later.
    package mutating func start(_ attempt: ProbeAttempt, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard connecting[attempt.id] == nil else { return nil }
        if connecting.count < limit, queued.isEmpty {
            let result = open(attempt, on: loop, now: now)
            if result?.isRefusedByLimit != true || !lower(now: now) { return result }
        }
        if queued.updateValue(attempt, forKey: attempt.id) == nil { waiting.append(attempt.id) }
        earliestEnd = min(earliestEnd, attempt.latestStart)
        return nil
    }

    /// Lowers the limit to the sockets that are open, after the system has refused one more.
    ///
    /// - Returns: whether an attempt that was refused can wait for the end of another one.
    private mutating func lower(now: Moment) -> Bool {
        limit = max(connecting.count, 1)
        recoveryDue = now.monotonicNanoseconds.addingSaturated(Self.recoveryGap)
        return !connecting.isEmpty
    }

    private mutating func raise(now: Moment) {
        guard recoveryDue <= now.monotonicNanoseconds else { return }
        limit = min(ceiling, limit + max(limit / 8, 1))
        recoveryDue = limit < ceiling ? now.monotonicNanoseconds.addingSaturated(Self.recoveryGap) : .max
    }

    /// Starts queued attempts while sockets are free. The loop calls this once per turn.
    ///
    /// - Returns: the results that are known at once, and those of attempts that waited too long to be made.
    package mutating func startWaiting(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        raise(now: now)
        var results = startWaitingHandshakes(on: loop, now: now)
        guard !queued.isEmpty else {
            if !waiting.isEmpty { waiting.removeAll() }
            return results
        }
        if earliestEnd <= now.monotonicNanoseconds {
            for id in waiting {
                guard let attempt = queued[id], attempt.latestStart <= now.monotonicNanoseconds else { continue }
                queued[id] = nil
                results.append(ProbeResult(id: id, errno: EMFILE, call: ProbeResult.queue))
            }
            waiting.removeAll { queued[$0] == nil }
            earliestEnd = queued.values.map(\.latestStart).min() ?? .max
        }
        var taken = 0
        while taken < waiting.count, connecting.count < limit {
            if let attempt = queued[waiting[taken]] {
                let result = open(attempt, on: loop, now: now)
                if result?.isRefusedByLimit == true, lower(now: now) { break }
                queued[waiting[taken]] = nil
                if let result { results.append(result) }
            }
            taken += 1
        }
        waiting.removeFirst(taken)
        return results
    }

    private mutating func open(_ attempt: ProbeAttempt, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        let slot = free.last ?? slots.count
        let token = takeToken(slot)
        switch opened(attempt, token, on: loop) {
        case .failure(let error):
            return failure(attempt.id, errno: error.errno, call: error.call, reporter: error.reporter)
        case .success(let socket):
            let connection = Connecting(attempt: attempt, socket: socket, started: now, token: token)
            if free.popLast() == nil { slots.append(connection) } else { slots[slot] = connection }
            connecting[attempt.id] = slot
            return nil
        }
    }

    /// Returns a new token of a slot.
    mutating func takeToken(_ slot: Int) -> UInt64 {
        defer { started += 1 }
        return started << Self.slotBits | UInt64(slot)
    }

    /// The failure of a connection that could not begin.
    struct OpenError: Error {
        let errno: Int32
        let call: String
        var reporter: ProbeResult.Reporter?
    }

    /// Begins a connection, and returns its socket, which the loop watches.
    func opened(_ attempt: ProbeAttempt, _ token: UInt64, on loop: borrowing EventLoop) -> Result<Int32, OpenError> {
        let family = attempt.address.family == .v4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family, kind, Int32(IPPROTO_TCP))
        guard socket >= 0 else { return .failure(OpenError(errno: errno, call: "socket")) }

        if let number = prepare(socket, for: attempt) {
            close(socket)
            return .failure(OpenError(errno: number, call: "setsockopt"))
        }
        if connect(socket, to: attempt) != 0, errno != EINPROGRESS, errno != EINTR {
            let number = errno
            let reporter = ErrorQueue.report(of: socket)?.reporter
            close(socket)
            return .failure(OpenError(errno: number, call: "connect", reporter: reporter))
        }
        // A handshake that is already complete makes the descriptor ready at once, so both cases are handled in `ready`.
        do {
            try loop.add(socket, interest: .writeOnce, token: token)
        } catch {
            close(socket)
            return .failure(OpenError(errno: error.errno, call: error.call))
        }
        return .success(socket)
    }

    func slot(of token: UInt64) -> Int? {
        let slot = Int(token & (1 << Self.slotBits - 1))
        return slots.indices.contains(slot) && slots[slot]?.token == token ? slot : nil
    }

    /// Handles a descriptor that the loop reported. Tokens of ended attempts are ignored.
    ///
    /// - Returns: the attempt's result; `nil` while the attempt is running.
    package mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let slot = slot(of: ready.token), let connection = slots[slot] else { return nil }
        if connection.levels != nil { return proceed(slot, ready, on: loop, now: now) }
        let id = connection.attempt.id
        guard let result = outcome(of: connection, now: now) else {
            do { try loop.change(connection.socket, interest: .writeOnce, token: ready.token) } catch {
                finish(slot)
                return ProbeResult(id: id, errno: error.errno, call: error.call)
            }
            return nil
        }
        if result.errno == 0, let plan = connection.attempt.plan?.value {
            return beginLevels(slot, plan, result, on: loop, now: now)
        }
        finish(slot)
        return result
    }

    /// Ends an attempt without a result.
    package mutating func cancel(_ id: UInt64, on loop: borrowing EventLoop) {
        guard let slot = connecting[id] else {
            queued[id] = nil
            return
        }
        // A process forked by another thread may still hold the socket, and epoll would continue to report it (epoll(7)).
        if let connection = slots[slot] { loop.remove(connection.socket) }
        finish(slot)
    }

    /// Ends all attempts without results.
    package mutating func closeAll() {
        for case let connection? in slots where connection.socket >= 0 { close(connection.socket) }
        (slots, free, connecting) = ([], [], [:])
        (waiting, queued) = ([], [:])
        (levelSlots, earliestLevelEnd) = ([], .max)
        (waitingHandshakes, unplacedHandshakes) = ([], 0)
    }

    // A reported socket is not watched any more (EPOLLONESHOT), so that it needs no further call before it is closed.
    mutating func finish(_ slot: Int) {
        guard let connection = slots[slot] else { return }
        if connection.socket >= 0 { close(connection.socket) }
        connecting[connection.attempt.id] = nil
        if connection.isUnplaced { unplacedHandshakes -= 1 }
        slots[slot] = nil
        levelSlots.remove(slot)
        free.append(slot)
    }
}

extension TCPProber {
    /// Sets the socket's options. Returns the errno of a required option that failed; `nil` on success.
    private func prepare(_ socket: Int32, for attempt: ProbeAttempt) -> Int32? {
        // The following three options improve a probe, but are not required.
        set(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, 0 as Int32)
        SocketOptions.closeByReset(socket)
        ErrorQueue.enable(on: socket, attempt.address.family)
        if attempt.hasSmallSegments { set(socket, Int32(IPPROTO_TCP), TCP_MAXSEG, Self.smallSegment) }
        return attempt.interface.flatMap { SocketOptions.bind(socket, to: $0) }
    }

    /// The size of segments that every IPv4 network carries (RFC 1122 section 4.2.2.6).
    private static let smallSegment: Int32 = 536

    private func set<Value>(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) { setsockopt(socket, level, option, $0.baseAddress, socklen_t($0.count)) }
    }

    private func connect(_ socket: Int32, to attempt: ProbeAttempt) -> Int32 {
        SocketAddress(attempt.address, port: attempt.port, zone: attempt.zone).connect(socket)
    }

    func outcome(of connection: Connecting, now: Moment) -> ProbeResult? {
        let id = connection.attempt.id
        var info = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        let known = getsockopt(connection.socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
        // The server may have closed the connection since.
        let state = Int(info.tcpi_state)
        if known, state == Int(TCP_ESTABLISHED) || state == Int(TCP_CLOSE_WAIT) {
            return success(of: connection, info, now: now)
        }

        var number: Int32 = 0
        size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &number, &size) == 0 else {
            return ProbeResult(id: id, errno: errno, call: "getsockopt")
        }
        if number != 0 { return failure(id, errno: number, call: "handshake", socket: connection.socket) }

        if known, state == Int(TCP_SYN_SENT) {
            // Not all kernels end a connect on an ICMP message. The message is the result in any case.
            guard let record = ErrorQueue.report(of: connection.socket), record.errno != 0 else { return nil }
            return ProbeResult(id: id, errno: record.errno, call: "handshake", reporter: record.reporter)
        }
        return success(of: connection, known ? info : nil, now: now)
    }

    private func success(of connection: Connecting, _ info: tcp_info?, now: Moment) -> ProbeResult {
        let id = connection.attempt.id
        if SocketAddress.isConnectedToItself(connection.socket) {
            return failure(id, errno: ECONNREFUSED, call: "handshake", reporter: nil)
        }
        guard let info else {
            return ProbeResult(id: id, roundTripNanoseconds: max(1, now.elapsed(since: connection.started).saturatingNanoseconds))
        }
        let retransmissions = Int(info.tcpi_total_retrans)
        return ProbeResult(
            id: id, roundTripNanoseconds: Self.roundTrip(microseconds: info.tcpi_rtt, retransmissions: retransmissions) ?? 0,
            retransmissions: retransmissions)
    }

    /// The kernel's first retransmission timeout of SYN and SYN-ACK segments in microseconds (TCP_TIMEOUT_INIT, RFC 6298 section 2).
    private static let retransmissionTimeout: UInt32 = 1_000_000

    /// Returns the round trip of a handshake in nanoseconds by `tcpi_rtt`; `nil` if it is not known.
    ///
    /// An answer to a retransmitted SYN may belong to any of its copies (RFC 6298 section 3, Karn's algorithm). With TCP timestamps
    /// the kernel measures from the copy that the server echoes. If the server's own answer was lost first, that time contains the
    /// timeout of a retransmission, so only a shorter time is a round trip.
    static func roundTrip(microseconds: UInt32, retransmissions: Int) -> Int64? {
        guard microseconds > 0, retransmissions == 0 || microseconds < retransmissionTimeout else { return nil }
        return Int64(microseconds) * 1_000
    }

    private func failure(_ id: UInt64, errno number: Int32, call: String, socket: Int32) -> ProbeResult {
        failure(id, errno: number, call: call, reporter: ErrorQueue.report(of: socket)?.reporter)
    }

    private func failure(_ id: UInt64, errno number: Int32, call: String, reporter: ProbeResult.Reporter?) -> ProbeResult {
        ProbeResult(id: id, errno: number, call: call, reporter: reporter)
    }
}
