internal import CLinux
internal import EventLoop
internal import Glibc
internal import Pacing

/// Sends the UDP datagrams that the targets' machines request, on the loop's thread and inside its network namespace.
///
/// Each attempt has a socket and a port of its own, which a forged answer would have to guess. Every failure is a ``ProbeResult``, as that of
/// ``TCPProber``. An attempt without any answer has none: the machine cancels it at its deadline.
struct DatagramProber: ~Copyable {
    /// The tokens of the prober's descriptors.
    private static let tokens: Range<UInt64> = (1 << 59)..<(1 << 60)
    /// The most datagrams that are read from one socket in a turn.
    private static let readLimit = 16
    private static let bufferSize = 65_536

    private struct Running {
        let attempt: UInt64
        let socket: Int32
        let run: any DatagramRun
    }

    private var running: [UInt64: Running] = [:]
    private var tokensByAttempt: [UInt64: UInt64] = [:]
    private var nextToken = DatagramProber.tokens.lowerBound
    private var earliest = Int64.max

    deinit { for running in running.values { close(running.socket) } }

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
        _ attempt: ProbeAttempt, _ plan: any DatagramPlan, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard tokensByAttempt[attempt.id] == nil else { return nil }
        let family = attempt.address.family == .v4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family, kind, Int32(IPPROTO_UDP))
        guard socket >= 0 else { return ProbeResult(id: attempt.id, errno: errno, call: "socket") }
        func failed(_ number: Int32, _ call: String) -> ProbeResult {
            close(socket)
            return ProbeResult(id: attempt.id, errno: number, call: call)
        }
        ErrorQueue.enable(on: socket, attempt.address.family)
        if let number = attempt.interface.flatMap({ SocketOptions.bind(socket, to: $0) }) { return failed(number, "setsockopt") }
        if let refusal = SocketOptions.apply(attempt.selector, to: socket, zone: attempt.sourceZone) {
            return failed(refusal.errno, refusal.call)
        }
        guard SocketAddress(attempt.address, port: attempt.port, zone: attempt.zone).connect(socket) == 0 else {
            return failed(errno, "connect")
        }
        let token = nextToken
        do { try loop.add(socket, interest: .read, token: token) } catch { return failed(error.errno, error.call) }
        nextToken = token + 1 < Self.tokens.upperBound ? token + 1 : Self.tokens.lowerBound
        let run = plan.makeRun(number: .random(in: .min ... .max))
        running[token] = Running(attempt: attempt.id, socket: socket, run: run)
        tokensByAttempt[attempt.id] = token
        run.begin(now.monotonicNanoseconds)
        return proceed(token, on: loop)
    }

    /// Handles a descriptor that the loop reported.
    ///
    /// - Returns: the attempt's result; `nil` while it is running.
    mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let running = running[ready.token] else { return nil }
        let time = now.monotonicNanoseconds
        withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
            for _ in 0..<Self.readLimit where !running.run.hasEnded {
                let count = recv(running.socket, buffer.baseAddress, buffer.count, 0)
                if count >= 0 {
                    running.run.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), now: time)
                } else if errno == EAGAIN {
                    break
                }
                // Another error belongs to a datagram that was sent, and its report is in the error queue.
            }
        }
        if !running.run.hasEnded, ready.isBroken, let record = ErrorQueue.report(of: running.socket), record.errno != 0 {
            end(ready.token, on: loop)
            return ProbeResult(id: running.attempt, errno: record.errno, call: ProbeResult.answer, reporter: record.reporter)
        }
        return proceed(ready.token, on: loop)
    }

    /// Continues the conversations whose time has come.
    ///
    /// - Returns: the results that are known now.
    mutating func advance(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        let time = now.monotonicNanoseconds
        guard earliest <= time else { return [] }
        // A fixed order, so that a recording has the results in the order of the attempts.
        let due = running.filter { $0.value.run.due <= time }.sorted { $0.value.attempt < $1.value.attempt }
        earliest = .max
        let results = due.compactMap { token, running -> ProbeResult? in
            running.run.tick(time)
            return proceed(token, on: loop)
        }
        earliest = running.values.lazy.map(\.run.due).min() ?? .max
        return results
    }

    /// Ends an attempt without a result.
    mutating func cancel(_ id: UInt64, on loop: borrowing EventLoop) {
        if let token = tokensByAttempt[id] { end(token, on: loop) }
    }

    /// Ends all attempts without results.
    mutating func closeAll() {
        for running in running.values { close(running.socket) }
        (running, tokensByAttempt, earliest) = ([:], [:], .max)
    }

    /// Sends what the conversation has to say. Returns the result if it has ended.
    private mutating func proceed(_ token: UInt64, on loop: borrowing EventLoop) -> ProbeResult? {
        guard let running = running[token] else { return nil }
        for datagram in running.run.takeOutput() {
            let count = datagram.withUnsafeBytes { send(running.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            // A full buffer loses a datagram, as the network may. The errors of earlier ones are in the error queue.
            guard count < 0, errno != EAGAIN, errno != ECONNREFUSED else { continue }
            let number = errno
            end(token, on: loop)
            return ProbeResult(id: running.attempt, errno: number, call: "sendto")
        }
        guard running.run.hasEnded else {
            earliest = min(earliest, running.run.due)
            return nil
        }
        end(token, on: loop)
        var result = ProbeResult(id: running.attempt, roundTripNanoseconds: running.run.result.answerNanoseconds ?? 0)
        result.levels = running.run.result
        return result
    }

    private mutating func end(_ token: UInt64, on loop: borrowing EventLoop) {
        guard let ended = running.removeValue(forKey: token) else { return }
        tokensByAttempt[ended.attempt] = nil
        // A process forked by another thread may still hold the socket, and epoll would continue to report it (epoll(7)).
        loop.remove(ended.socket)
        close(ended.socket)
    }
}
