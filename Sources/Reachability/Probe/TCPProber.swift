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

    private struct Connection {
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
    private struct Levels {
        let run: any StreamRun
        /// The result of the connection.
        let connected: ProbeResult
        /// The bytes that the socket has not accepted yet.
        var output: [UInt8] = []
        var isWriting = false
        /// Whether the next connection is not established yet.
        var isConnecting = false
        /// Whether the TLS handshake waits for the end of others.
        var isWaiting = false
    }

    private static let readSize = 16_384
    /// The number of reads for one connection in a turn, so that a server that sends without end delays no other probe.
    private static let readLimit = 4
    private static let errorLimit = 8
    private static let contextLimit = 16

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
    private var slots: ContiguousArray<Connection?> = []
    private var free: [Int] = []
    // The slots of running attempts, by their ids.
    private var slotsByID: [UInt64: Int] = [:]
    // Attempts start in order of arrival. The queue has the numbers of attempts; canceled ones are not in `queued` any more.
    private var waiting: [UInt64] = []
    private var queued: [UInt64: ProbeAttempt] = [:]
    // The earliest `latestStart` of the queue, so that the queue is searched only when an attempt has waited too long.
    private var earliestEnd = Int64.max
    // The slots of connections with levels, and the earliest end of their levels.
    private var levelSlots: Set<Int> = []
    private var earliestLevelEnd = Int64.max
    // The tokens of connections whose TLS handshakes wait, in order of arrival, and the number of those that run without a place.
    private var waitingHandshakes: [UInt64] = []
    private var unplacedHandshakes = 0
    /// The contexts of the last TLS probes, which would be released between two probes otherwise.
    private(set) var contexts: [TLSClientContext] = []
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
    package var count: Int { slotsByID.count }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the prober.
    package static func owns(_ token: UInt64) -> Bool { token >= firstToken && token != .max }

    /// Starts an attempt, or queues the attempt if all sockets are in use.
    ///
    /// - Returns: the result if it is known at once, otherwise `nil`. Then ``ready(_:on:now:)`` or ``startWaiting(on:now:)``
    ///   returns the result later.
    package mutating func start(_ attempt: ProbeAttempt, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard slotsByID[attempt.id] == nil else { return nil }
        if slotsByID.count < limit, queued.isEmpty {
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
        limit = max(slotsByID.count, 1)
        recoveryDue = now.monotonicNanoseconds.addingSaturated(Self.recoveryGap)
        return !slotsByID.isEmpty
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
        while taken < waiting.count, slotsByID.count < limit {
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
        let token = makeToken(slot)
        switch opened(attempt, token, on: loop) {
        case .failure(let error):
            return failure(attempt.id, errno: error.errno, call: error.call, reporter: error.reporter)
        case .success(let socket):
            let connection = Connection(attempt: attempt, socket: socket, started: now, token: token)
            if free.popLast() == nil { slots.append(connection) } else { slots[slot] = connection }
            slotsByID[attempt.id] = slot
            return nil
        }
    }

    /// Returns a new token of a slot.
    private mutating func makeToken(_ slot: Int) -> UInt64 {
        defer { started += 1 }
        return started << Self.slotBits | UInt64(slot)
    }

    /// The failure of a connection that could not begin.
    private struct OpenError: Error {
        let errno: Int32
        let call: String
        var reporter: ProbeResult.Reporter?
    }

    /// Begins a connection, and returns its socket, which the loop watches.
    private func opened(_ attempt: ProbeAttempt, _ token: UInt64, on loop: borrowing EventLoop) -> Result<Int32, OpenError> {
        let family = attempt.address.family == .v4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family, kind, Int32(IPPROTO_TCP))
        guard socket >= 0 else { return .failure(OpenError(errno: errno, call: "socket")) }

        if let refusal = prepare(socket, for: attempt) {
            close(socket)
            return .failure(OpenError(errno: refusal.errno, call: refusal.call))
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

    private func slot(of token: UInt64) -> Int? {
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
        if result.errno == 0, let plan = connection.attempt.plan?.stream {
            return beginLevels(slot, plan, result, on: loop, now: now)
        }
        finish(slot)
        return result
    }

    /// Ends an attempt without a result.
    package mutating func cancel(_ id: UInt64, on loop: borrowing EventLoop) {
        guard let slot = slotsByID[id] else {
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
        (slots, free, slotsByID) = ([], [], [:])
        (waiting, queued) = ([], [:])
        (levelSlots, earliestLevelEnd) = ([], .max)
        (waitingHandshakes, unplacedHandshakes) = ([], 0)
    }

    // A reported socket is not watched any more (EPOLLONESHOT), so that it needs no further call before it is closed.
    private mutating func finish(_ slot: Int) {
        guard let connection = slots[slot] else { return }
        if connection.socket >= 0 { close(connection.socket) }
        slotsByID[connection.attempt.id] = nil
        if connection.isUnplaced { unplacedHandshakes -= 1 }
        slots[slot] = nil
        levelSlots.remove(slot)
        free.append(slot)
    }

    // MARK: Sockets

    /// Sets the socket's options. Returns the call for a required option that failed; `nil` on success.
    private func prepare(_ socket: Int32, for attempt: ProbeAttempt) -> SocketOptions.Refusal? {
        // The following three options improve a probe, but are not required.
        set(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, 0 as Int32)
        SocketOptions.closeByReset(socket)
        ErrorQueue.enable(on: socket, attempt.address.family)
        if attempt.hasSmallSegments { set(socket, Int32(IPPROTO_TCP), TCP_MAXSEG, Self.smallSegment) }
        if let number = attempt.interface.flatMap({ SocketOptions.bind(socket, to: $0) }) {
            return SocketOptions.Refusal(call: "setsockopt", errno: number)
        }
        return SocketOptions.apply(attempt.selector, to: socket, zone: attempt.sourceZone)
    }

    /// The size of segments that every IPv4 network carries (RFC 1122 section 4.2.2.6).
    private static let smallSegment: Int32 = 536

    private func set<Value>(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) { setsockopt(socket, level, option, $0.baseAddress, socklen_t($0.count)) }
    }

    private func connect(_ socket: Int32, to attempt: ProbeAttempt) -> Int32 {
        SocketAddress(attempt.address, port: attempt.port, zone: attempt.zone).connect(socket)
    }

    private func outcome(of connection: Connection, now: Moment) -> ProbeResult? {
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

    private func success(of connection: Connection, _ info: tcp_info?, now: Moment) -> ProbeResult {
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

    // MARK: Conversations

    /// The time at which ``expireLevels(on:now:)`` has something to do; `nil` for never.
    var levelDeadline: Int64? { earliestLevelEnd == .max ? nil : earliestLevelEnd }

    /// Begins the levels on a new connection.
    ///
    /// - Returns: the result of the connection, or that of the levels if they have already failed.
    private mutating func beginLevels(
        _ slot: Int, _ plan: any StreamPlan, _ connected: ProbeResult, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard let attempt = slots[slot]?.attempt else { return nil }
        let run = plan.makeRun(deadline: attempt.deadline)
        if let context = run.context { keep(context) }
        slots[slot]?.levels = Levels(run: run, connected: connected)
        levelSlots.insert(slot)
        return beginRun(slot, on: loop, now: now) ?? connected
    }

    /// Begins the levels of a connection that is established, or lets their TLS handshake wait.
    ///
    /// - Returns: the result if the levels have already failed.
    private mutating func beginRun(_ slot: Int, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        if run.beginsWithTLS, !connection.isUnplaced, !connection.attempt.hasHandshakePlace {
            guard unplacedHandshakes < Self.unplacedHandshakeLimit else {
                slots[slot]?.levels?.isWaiting = true
                waitingHandshakes.append(connection.token)
                earliestLevelEnd = min(earliestLevelEnd, connection.attempt.latestStart)
                return nil
            }
            unplacedHandshakes += 1
            slots[slot]?.isUnplaced = true
        }
        run.connected(now.monotonicNanoseconds)
        if let failure = flush(slot, on: loop, isFirst: true, now: now) { return failure }
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Begins handshakes that wait, as far as others have ended.
    ///
    /// - Returns: the results of those that have already failed.
    private mutating func startWaitingHandshakes(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        guard !waitingHandshakes.isEmpty else { return [] }
        var results: [ProbeResult] = []
        var taken = 0
        while taken < waitingHandshakes.count {
            // The attempt may have ended.
            guard let slot = slot(of: waitingHandshakes[taken]), slots[slot]?.levels?.isWaiting == true else {
                taken += 1
                continue
            }
            guard unplacedHandshakes < Self.unplacedHandshakeLimit else { break }
            taken += 1
            slots[slot]?.levels?.isWaiting = false
            if let result = beginRun(slot, on: loop, now: now) { results.append(result) }
        }
        waitingHandshakes.removeFirst(taken)
        return results
    }

    /// Keeps the context for later probes: to load the system's authorities again takes up to 80 ms.
    private mutating func keep(_ context: TLSClientContext) {
        guard !contexts.contains(where: { $0 === context }) else { return }
        if contexts.count == Self.contextLimit { contexts.removeFirst() }
        contexts.append(context)
    }

    /// Reads what has arrived, and sends what follows from it.
    ///
    /// - Returns: the result if the levels have ended.
    private mutating func proceed(
        _ slot: Int, _ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        if connection.levels?.isConnecting == true { return reconnected(slot, on: loop, now: now) }
        let time = now.monotonicNanoseconds
        // Messages of routers about a connection do not end it, but epoll reports them until they are read.
        if ready.isBroken { for _ in 0..<Self.errorLimit where ErrorQueue.report(of: connection.socket) == nil { break } }
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 16) { buffer in
            for _ in 0..<Self.readLimit where !run.hasEnded {
                let count = recv(connection.socket, buffer.baseAddress, buffer.count, 0)
                if count > 0 {
                    run.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), now: time)
                    // The socket is empty.
                    if count < buffer.count { break }
                } else if count == 0 {
                    run.inputEnded(time)
                } else if errno == EAGAIN {
                    break
                } else if errno != EINTR {
                    run.connectionFailed(errno)
                }
            }
        }
        if let port = run.nextPort(after: connection.attempt.port) { return reconnect(slot, to: port, on: loop, now: now) }
        if let failure = flush(slot, on: loop, now: now) { return failure }
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Opens another connection to the same address, as a redirect within the host needs it.
    private mutating func reconnect(
        _ slot: Int, to port: UInt16, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        var attempt = connection.attempt
        attempt.port = port
        loop.remove(connection.socket)
        close(connection.socket)
        let token = makeToken(slot)
        slots[slot]?.attempt = attempt
        slots[slot]?.token = token
        slots[slot]?.socket = -1
        slots[slot]?.levels?.isConnecting = true
        slots[slot]?.levels?.output = []
        switch opened(attempt, token, on: loop) {
        case .success(let socket):
            slots[slot]?.socket = socket
            run.willConnect(now.monotonicNanoseconds)
            return nil
        case .failure(let error):
            run.connectionFailed(error.errno)
            return end(slot, on: loop)
        }
    }

    private mutating func reconnected(_ slot: Int, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        guard let result = outcome(of: connection, now: now) else {
            do { try loop.change(connection.socket, interest: .writeOnce, token: connection.token) } catch {
                run.connectionFailed(error.errno)
                return end(slot, on: loop)
            }
            return nil
        }
        slots[slot]?.levels?.isConnecting = false
        if result.errno == 0 {
            run.didConnect(now.monotonicNanoseconds)
            return beginRun(slot, on: loop, now: now)
        }
        run.connectionFailed(result.errno)
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Ends the levels whose time is over.
    ///
    /// - Returns: their results.
    mutating func expireLevels(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        let time = now.monotonicNanoseconds
        guard earliestLevelEnd <= time else { return [] }
        var results: [ProbeResult] = []
        earliestLevelEnd = .max
        // A fixed order, so that a recording has the results in the order of the attempts.
        for slot in levelSlots.sorted() {
            guard let connection = slots[slot], let levels = connection.levels else { continue }
            let levelEnd = levels.isWaiting ? connection.attempt.latestStart : levels.run.deadline
            guard levelEnd <= time else {
                earliestLevelEnd = min(earliestLevelEnd, levelEnd)
                continue
            }
            if levels.isWaiting {
                // The server would not have enough time to answer.
                loop.remove(connection.socket)
                finish(slot)
                results.append(ProbeResult(id: connection.attempt.id, errno: EMFILE, call: ProbeResult.queue))
                continue
            }
            levels.run.deadlineReached(Self.progress(of: connection.socket, hasUnsentBytes: !levels.output.isEmpty))
            if let result = end(slot, on: loop) { results.append(result) }
        }
        return results
    }

    private static func progress(of socket: Int32, hasUnsentBytes: Bool) -> ConnectionProgress? {
        var state = netwatch_tcp_state()
        guard netwatch_tcp_state_of(socket, &state) == 0 else { return nil }
        return ConnectionProgress(
            unacknowledged: Int(state.unacknowledged),
            // What was sent again because its acknowledgment came late was not lost.
            retransmissions: max(0, Int(state.retransmissions) - Int(state.duplicates)),
            bytesAcknowledged: Int(exactly: state.bytes_acknowledged), roundTripMicroseconds: Int(state.round_trip),
            sinceSentMilliseconds: Int(state.since_sent), outOfOrder: Int(state.out_of_order), hasUnsentBytes: hasUnsentBytes)
    }

    /// Sends the bytes of the levels, and watches the socket for what they wait for.
    ///
    /// - Returns: the result if the system refuses to watch the socket.
    private mutating func flush(
        _ slot: Int, on loop: borrowing EventLoop, isFirst: Bool = false, now: Moment
    ) -> ProbeResult? {
        guard let connection = slots[slot], var levels = connection.levels else { return nil }
        levels.output += levels.run.takeOutput()
        // The last bytes wait for the FIN of close(2), and leave in one segment with it (MSG_MORE, send(2)).
        let isLast = levels.run.hasEnded && levels.run.endsGracefully
        let flags = Int32(MSG_NOSIGNAL) | (isLast ? Int32(MSG_MORE) : 0)
        while !levels.output.isEmpty {
            let count = levels.output.withUnsafeBytes { send(connection.socket, $0.baseAddress, $0.count, flags) }
            if count > 0 {
                levels.run.noteSent(count)
                levels.output.removeFirst(count)
            } else if errno == EINTR {
                continue
            } else {
                // The server may have answered before it has closed the connection: its bytes are read before the error.
                if errno != EAGAIN { levels.output = [] }
                break
            }
        }
        let wasWriting = levels.isWriting
        levels.isWriting = !levels.output.isEmpty
        slots[slot]?.levels = levels
        earliestLevelEnd = min(earliestLevelEnd, levels.run.deadline)
        guard !levels.run.hasEnded, isFirst || wasWriting != levels.isWriting else { return nil }
        do {
            let interest: EventLoop.Interest = levels.isWriting ? [.read, .write] : .read
            try loop.change(connection.socket, interest: interest, token: connection.token)
        } catch {
            finish(slot)
            return ProbeResult(id: connection.attempt.id, errno: error.errno, call: error.call)
        }
        return nil
    }

    private mutating func end(_ slot: Int, on loop: borrowing EventLoop) -> ProbeResult? {
        guard let connection = slots[slot], let levels = connection.levels else { return nil }
        // A server whose answer is complete sees an ordinary end of the connection rather than a reset.
        if levels.run.endsGracefully { SocketOptions.closeGracefully(connection.socket) }
        loop.remove(connection.socket)
        finish(slot)
        var result = levels.connected
        result.levels = levels.run.result
        result.levels?.hasSmallSegments = connection.attempt.hasSmallSegments
        return result
    }
}
