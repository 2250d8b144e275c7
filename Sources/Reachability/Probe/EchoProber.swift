internal import ByteComparison
internal import CLinux
internal import EventLoop
internal import Glibc
internal import Pacing

/// Sends the ICMP echo requests that the targets' machines request, on the loop's thread and inside its network namespace.
///
/// Attempts with the same options share a socket: ten thousand targets need no more than one. An unprivileged socket is used if the user's group may
/// have one (`net.ipv4.ping_group_range`, icmp(7)), else a raw one, for which a process needs CAP_NET_RAW (raw(7)).
///
/// Every failure is a ``ProbeResult``, as that of ``TCPProber``. An attempt without any answer has none: the machine cancels it at its deadline.
struct EchoProber: ~Copyable {
    /// The tokens of the prober's descriptors.
    private static let tokens: Range<UInt64> = (1 << 60)..<(1 << 61)
    /// The most messages that are read from one socket in a turn.
    private static let readLimit = 256
    private static let errorLimit = 64
    private static let bufferSize = 65_536
    /// The most sockets that stay open without users.
    private static let idleLimit = 8

    /// What attempts that share a socket have in common.
    private struct Options: Hashable {
        let family: IPAddress.Family
        let interface: ExactString?
        let selector: RouteSelector?
        let sourceZone: UInt32
        let hopLimit: UInt8?
        let forbidsFragments: Bool
    }

    private struct Socket {
        let options: Options
        let descriptor: Int32
        let isRaw: Bool
        let identifier: UInt16
        var nextSequence: UInt16 = 0
        /// The numbers of the attempts whose requests have no answer yet, by the requests' sequence numbers.
        var pending: [UInt16: UInt64] = [:]
        var users = 0
        /// Whether the socket stays open without users. A raw socket would receive the replies of other processes, and the interface of a bound one may
        /// be removed and made again, as a source address may.
        var staysOpen: Bool { !isRaw && options.interface == nil && options.selector == nil }

        /// Returns a sequence number that no request without an answer has; `nil` if there is none.
        mutating func takeSequence(for id: UInt64) -> UInt16? {
            guard pending.count <= Int(UInt16.max) else { return nil }
            while pending[nextSequence] != nil { nextSequence &+= 1 }
            defer { nextSequence &+= 1 }
            pending[nextSequence] = id
            return nextSequence
        }
    }

    private struct Request {
        let sequence: UInt16
        let sent: Int64
        /// The time of the wall clock, with which the kernel's time of the answer is compared.
        let sentByWallClock: Int64
    }

    private struct Running {
        let attempt: ProbeAttempt
        let burst: EchoBurst
        let token: UInt64
        let cookie: UInt64
        var requests: [Request] = []
        var answers = EchoAnswers()
        /// The time of the next request, or of the end if an answer has come; `.max` for none.
        var due = Int64.max
    }

    private var sockets: [UInt64: Socket] = [:]
    private var tokens: [Options: UInt64] = [:]
    private var nextToken = EchoProber.tokens.lowerBound
    private var running: [UInt64: Running] = [:]
    private var earliest = Int64.max

    deinit { for socket in sockets.values { close(socket.descriptor) } }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the prober.
    static func owns(_ token: UInt64) -> Bool { tokens.contains(token) }

    /// The number of running attempts.
    var count: Int { running.count }

    /// The time at which ``advance(on:now:)`` has something to do; `nil` for never.
    var deadline: Int64? { earliest == .max ? nil : earliest }

    /// Starts an attempt.
    ///
    /// - Returns: the result if it is known at once, otherwise `nil`. Then ``ready(_:on:now:)`` or ``advance(on:now:)`` returns the result later.
    mutating func start(
        _ attempt: ProbeAttempt, _ burst: EchoBurst, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard running[attempt.id] == nil else { return nil }
        let options = Options(
            family: attempt.address.family, interface: attempt.interface.map { ExactString($0) }, selector: attempt.selector,
            sourceZone: attempt.sourceZone, hopLimit: burst.hopLimit, forbidsFragments: burst.forbidsFragments)
        let token: UInt64
        switch socket(with: options, on: loop) {
        case .failure(let error): return ProbeResult(id: attempt.id, errno: error.errno, call: error.call)
        case .success(let found): token = found
        }
        sockets[token]?.users += 1
        var generator = SystemRandomNumberGenerator()
        running[attempt.id] = Running(attempt: attempt, burst: burst, token: token, cookie: generator.next())
        return send(attempt.id, on: loop)
    }

    /// Sends the requests that are due, and ends the bursts whose time is over.
    ///
    /// - Returns: the results that are known now.
    mutating func advance(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        let time = now.monotonicNanoseconds
        guard earliest <= time else { return [] }
        // A fixed order, so that a recording has the results in the order of the attempts.
        let due = running.values.filter { $0.due <= time }.map(\.attempt.id).sorted()
        let results = due.compactMap { id -> ProbeResult? in
            guard let attempt = running[id] else { return nil }
            if attempt.attempt.deadline <= time || attempt.answers.sent >= attempt.burst.count { return finish(id, on: loop) }
            return send(id, on: loop)
        }
        earliest = running.values.lazy.map(\.due).min() ?? .max
        return results
    }

    /// Handles a descriptor that the loop reported.
    ///
    /// - Returns: the results that are known now.
    mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        guard let socket = sockets[ready.token] else { return [] }
        var results: [ProbeResult] = []
        // The answers first: an error that came after them does not concern them.
        withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
            for _ in 0..<Self.readLimit {
                var datagram = netwatch_ip_datagram()
                let count = netwatch_receive_ip(socket.descriptor, buffer.baseAddress, buffer.count, &datagram)
                // Other errors than that there is nothing belong to requests, and are in the error queue.
                guard count >= 0 else {
                    if -count == Int(EAGAIN) { break }
                    continue
                }
                let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
                if let result = answered(ready.token, bytes, datagram, on: loop, now: now) { results.append(result) }
                // Nothing else is awaited.
                if sockets[ready.token]?.pending.isEmpty != false { break }
            }
        }
        if ready.isBroken { results += readErrors(ready.token, on: loop) }
        return results
    }

    /// Ends an attempt without a result.
    mutating func cancel(_ id: UInt64, on loop: borrowing EventLoop) { end(id, on: loop) }

    /// Ends all attempts without results.
    mutating func closeAll() {
        for socket in sockets.values { close(socket.descriptor) }
        (sockets, tokens, running, earliest) = ([:], [:], [:], .max)
    }

    // MARK: Requests and answers

    /// Sends the next request of a burst. Returns the result if the system refuses it.
    private mutating func send(_ id: UInt64, on loop: borrowing EventLoop) -> ProbeResult? {
        guard var attempt = running[id], var socket = sockets[attempt.token] else { return nil }
        guard let sequence = socket.takeSequence(for: id) else { return failed(id, ENOBUFS, "sendto", on: loop) }
        let (address, burst) = (attempt.attempt.address, attempt.burst)
        let bytes = EchoMessage.request(
            address.family, identifier: socket.identifier, sequence: sequence, cookie: attempt.cookie, size: burst.size)
        let moment = Moment.now
        let destination = SocketAddress(address, port: 0, zone: attempt.attempt.zone)
        let count = bytes.withUnsafeBytes { bytes in
            destination.withPointer { sendto(socket.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL), $0, $1) }
        }
        if count < 0 {
            let number = errno
            // The first request decides: what the system refuses later is lost, as what the network drops.
            if attempt.answers.sent == 0 { return failed(id, number, "sendto", on: loop) }
            socket.pending[sequence] = nil
        }
        sockets[attempt.token] = socket
        attempt.answers.noteSent()
        attempt.requests.append(
            Request(
                sequence: sequence, sent: moment.monotonicNanoseconds, sentByWallClock: moment.wallClockNanoseconds))
        running[id] = attempt
        return schedule(id, after: moment.monotonicNanoseconds, on: loop)
    }

    /// Sets the time of the next step. Returns the result if there is none.
    private mutating func schedule(_ id: UInt64, after time: Int64, on loop: borrowing EventLoop) -> ProbeResult? {
        guard var attempt = running[id] else { return nil }
        let isSent = attempt.answers.sent >= attempt.burst.count
        if isSent, attempt.answers.received == attempt.answers.sent { return finish(id, on: loop) }
        let next = isSent ? Int64.max : time.addingSaturated(attempt.burst.spacing)
        let end = attempt.answers.received > 0 ? attempt.attempt.deadline : .max
        attempt.due = min(next, end)
        earliest = min(earliest, attempt.due)
        running[id] = attempt
        return nil
    }

    private mutating func answered(
        _ token: UInt64, _ bytes: UnsafeRawBufferPointer, _ datagram: netwatch_ip_datagram, on loop: borrowing EventLoop,
        now: Moment
    ) -> ProbeResult? {
        guard let socket = sockets[token] else { return nil }
        let family = socket.options.family
        guard let reply = EchoMessage.reply(bytes, family, hasIPHeader: socket.isRaw && family == .v4),
            // The kernel gives an unprivileged socket its own answers only.
            !socket.isRaw || reply.identifier == socket.identifier,
            let id = socket.pending[reply.sequence], var attempt = running[id], reply.matches(attempt.cookie),
            let index = attempt.requests.firstIndex(where: { $0.sequence == reply.sequence }),
            withUnsafeBytes(of: datagram.sender, { IPAddress(bytes: $0.prefix(family == .v4 ? 4 : 16)) })
                == attempt.attempt.address
        else { return nil }
        sockets[token]?.pending[reply.sequence] = nil
        let request = attempt.requests[index]
        _ = attempt.answers.receive(index, roundTrip: Self.roundTrip(of: request, received: datagram.time, now: now))
        running[id] = attempt
        return schedule(id, after: attempt.requests.last?.sent ?? now.monotonicNanoseconds, on: loop)
    }

    /// Returns the round trip by the kernel's time of the answer, which does not contain the time in which this process was busy. The wall clock may have
    /// been set in between: then it is the time until now.
    private static func roundTrip(of request: Request, received: Int64, now: Moment) -> Int64 {
        let upper = max(1, now.monotonicNanoseconds.addingSaturated(-request.sent))
        guard received > 0, received > request.sentByWallClock else { return upper }
        return min(received.addingSaturated(-request.sentByWallClock), upper)
    }

    private mutating func readErrors(_ token: UInt64, on loop: borrowing EventLoop) -> [ProbeResult] {
        guard let socket = sockets[token] else { return [] }
        var results: [ProbeResult] = []
        for _ in 0..<Self.errorLimit {
            guard let error = ErrorQueue.next(of: socket.descriptor) else { break }
            guard let quoted = EchoMessage.quoted(error.head, socket.options.family),
                !socket.isRaw || quoted.identifier == socket.identifier, let id = sockets[token]?.pending[quoted.sequence]
            else { continue }
            sockets[token]?.pending[quoted.sequence] = nil
            // An answer to another request of the burst refutes the report.
            if let attempt = running[id], attempt.answers.received > 0 { continue }
            results.append(
                failed(id, error.errno, ProbeResult.answer, reporter: error.reporter, on: loop))
        }
        return results
    }

    // MARK: Ends

    private mutating func finish(_ id: UInt64, on loop: borrowing EventLoop) -> ProbeResult? {
        guard let attempt = running[id] else { return nil }
        end(id, on: loop)
        let answers = attempt.answers
        guard let mean = answers.mean else { return nil }
        var result = ProbeResult(id: id, roundTripNanoseconds: mean, retransmissions: max(0, answers.sent - answers.received))
        var levels = LevelResult()
        levels.answerNanoseconds = mean
        levels.facts[EchoFacts.self] = EchoFacts(answers)
        result.levels = levels
        return result
    }

    private mutating func failed(
        _ id: UInt64, _ number: Int32, _ call: String, reporter: ProbeResult.Reporter? = nil, on loop: borrowing EventLoop
    ) -> ProbeResult {
        end(id, on: loop)
        return ProbeResult(id: id, errno: number, call: call, reporter: reporter)
    }

    private mutating func end(_ id: UInt64, on loop: borrowing EventLoop) {
        guard let attempt = running.removeValue(forKey: id), var socket = sockets[attempt.token] else { return }
        for request in attempt.requests where socket.pending[request.sequence] == id { socket.pending[request.sequence] = nil }
        socket.users -= 1
        guard socket.users <= 0, !socket.staysOpen || sockets.count > Self.idleLimit else {
            sockets[attempt.token] = socket
            return
        }
        loop.remove(socket.descriptor)
        close(socket.descriptor)
        sockets[attempt.token] = nil
        tokens[socket.options] = nil
    }

    // MARK: Sockets

    private struct SocketError: Error {
        let errno: Int32
        let call: String
    }

    private mutating func socket(with options: Options, on loop: borrowing EventLoop) -> Result<UInt64, SocketError> {
        if let token = tokens[options] { return .success(token) }
        let (family, transport) =
            options.family == .v4 ? (AF_INET, Int32(IPPROTO_ICMP)) : (AF_INET6, Int32(IPPROTO_ICMPV6))
        let flags = Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        var isRaw = false
        var descriptor = Glibc.socket(family, Int32(SOCK_DGRAM.rawValue) | flags, transport)
        if descriptor < 0, errno == EACCES || errno == EPERM || errno == EPROTONOSUPPORT {
            isRaw = true
            descriptor = Glibc.socket(family, Int32(SOCK_RAW.rawValue) | flags, transport)
        }
        guard descriptor >= 0 else { return .failure(SocketError(errno: errno, call: "socket")) }
        if let refusal = prepare(descriptor, options, isRaw: isRaw) {
            close(descriptor)
            return .failure(SocketError(errno: refusal.errno, call: refusal.call))
        }
        let token = nextToken
        do { try loop.add(descriptor, interest: .read, token: token) } catch {
            close(descriptor)
            return .failure(SocketError(errno: error.errno, call: error.call))
        }
        nextToken = token + 1 < Self.tokens.upperBound ? token + 1 : Self.tokens.lowerBound
        var generator = SystemRandomNumberGenerator()
        sockets[token] = Socket(
            options: options, descriptor: descriptor, isRaw: isRaw, identifier: generator.next(), nextSequence: generator.next())
        tokens[options] = token
        return .success(token)
    }

    /// Sets the socket's options. Returns the call for a required option that failed; `nil` on success.
    private func prepare(_ socket: Int32, _ options: Options, isRaw: Bool) -> SocketOptions.Refusal? {
        func refusal(_ number: Int32) -> SocketOptions.Refusal { SocketOptions.Refusal(call: "setsockopt", errno: number) }
        func set(_ level: Int32, _ option: Int32, _ value: Int32) -> Int32? {
            var value = value
            return setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 ? nil : errno
        }
        let isIPv4 = options.family == .v4
        ErrorQueue.enable(on: socket, options.family)
        _ = set(SOL_SOCKET, Self.timestamps, 1)
        // Answers of ten thousand targets may arrive at once.
        _ = set(SOL_SOCKET, SO_RCVBUF, 1 << 20)
        if isRaw {
            // Only echo replies: a raw socket receives all messages otherwise.
            if isIPv4 {
                _ = set(Int32(IPPROTO_RAW), 1, Int32(bitPattern: ~(1 << 0)))
            } else {
                var filter = [UInt32](repeating: .max, count: 8)
                filter[129 / 32] &= ~(1 << UInt32(129 % 32))
                setsockopt(socket, Int32(IPPROTO_ICMPV6), 1, &filter, socklen_t(filter.count * 4))
            }
        }
        if let limit = options.hopLimit {
            let failure =
                isIPv4 ? set(Int32(IPPROTO_IP), IP_TTL, Int32(limit)) : set(Int32(IPPROTO_IPV6), IPV6_UNICAST_HOPS, Int32(limit))
            if let failure { return refusal(failure) }
        }
        if options.forbidsFragments {
            // IP_PMTUDISC_PROBE: routers may not fragment, and this host sends what it is told, whatever it knows of the path.
            let failure =
                isIPv4
                ? set(Int32(IPPROTO_IP), IP_MTU_DISCOVER, 3) : set(Int32(IPPROTO_IPV6), IPV6_MTU_DISCOVER, 3)
            if let failure { return refusal(failure) }
        }
        if let number = options.interface.flatMap({ SocketOptions.bind(socket, to: $0.wrappedValue) }) { return refusal(number) }
        return SocketOptions.apply(options.selector, to: socket, zone: options.sourceZone)
    }

    /// SO_TIMESTAMPNS (socket(7)).
    private static let timestamps: Int32 = 35
}
