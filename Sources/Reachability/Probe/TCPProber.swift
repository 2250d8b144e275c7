internal import CLinux
package import EventLoop
internal import Glibc
internal import Pacing

/// Makes the TCP connects that the targets' machines ask for, on the loop's thread and inside its network namespace.
///
/// A probe is meant to be invisible to the server's program: the final ACK of the handshake is held back (`TCP_QUICKACK` 0,
/// tcp(7)) and closing sends a reset (`SO_LINGER` with a time of 0, socket(7)). The server's kernel sees SYN and RST, its accept
/// queue stays empty, and neither side keeps a TIME_WAIT. The kernel holds the ACK back for 200 ms (TCP_DELACK_MAX); a loop that
/// is later than that makes an ordinary short connection of it.
///
/// Every failure, this process's own included, is a ``ProbeResult``; nothing throws. The kernel's own time-outs are not waited
/// for: the machine cancels an attempt when its deadline has passed.
package struct TCPProber: ~Copyable {
    /// The tokens of the prober's descriptors start here; none is used twice.
    package static let firstToken: UInt64 = 1 << 32
    /// As many sockets are open at once by default: what the process may open (getrlimit(2), RLIMIT_NOFILE) but for a few that its
    /// own work needs. More attempts wait for their turn.
    package static var defaultLimit: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0 else { return 512 }
        return max(16, Int(clamping: limit.rlim_cur) - 64)
    }
    // One ICMP message is the rule; a server that is flooded with forged ones cannot keep the loop.
    private static let recordsRead = 8

    private struct Connecting {
        let attempt: ProbeAttempt
        let socket: Int32
        let started: Moment
    }

    private let limit: Int
    private var connecting: [UInt64: Connecting] = [:]
    private var tokens: [UInt64: UInt64] = [:]
    // First come, first started.
    private var waiting: [ProbeAttempt] = []
    private var nextToken = TCPProber.firstToken

    /// A prober without sockets; `limit` is how many it opens at once.
    package init(limit: Int = TCPProber.defaultLimit) {
        self.limit = limit
    }

    deinit {
        for connection in connecting.values { close(connection.socket) }
    }

    /// How many attempts are under way.
    package var count: Int { connecting.count }

    /// Whether a ready descriptor is one of the prober's, or was.
    package static func owns(_ token: UInt64) -> Bool { token >= firstToken && token != .max }

    /// Begins an attempt, or puts it into the queue when all sockets are taken.
    ///
    /// - Returns: its result where that is known at once, else `nil`: it follows from ``ready(_:on:now:)`` or
    ///   ``startWaiting(on:now:)``.
    package mutating func start(_ attempt: ProbeAttempt, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard tokens[attempt.id] == nil else { return nil }
        guard connecting.count < limit, waiting.isEmpty else {
            if !waiting.contains(where: { $0.id == attempt.id }) { waiting.append(attempt) }
            return nil
        }
        return open(attempt, on: loop, now: now)
    }

    /// Begins what waits, as far as sockets are free; to be called once a turn.
    ///
    /// - Returns: the results that are known at once, and those of attempts that waited for too long to be made at all.
    package mutating func startWaiting(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        guard !waiting.isEmpty else { return [] }
        var results: [ProbeResult] = []
        var left: [ProbeAttempt] = []
        for attempt in waiting {
            if attempt.latestStart <= now.monotonicNanoseconds {
                results.append(ProbeResult(id: attempt.id, errno: EMFILE, call: ProbeResult.queue))
            } else if connecting.count < limit {
                if let result = open(attempt, on: loop, now: now) { results.append(result) }
            } else {
                left.append(attempt)
            }
        }
        waiting = left
        return results
    }

    private mutating func open(_ attempt: ProbeAttempt, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        let family = attempt.address.family == .v4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family, kind, Int32(IPPROTO_TCP))
        guard socket >= 0 else { return ProbeResult(id: attempt.id, errno: errno, call: "socket") }

        if let number = prepare(socket, for: attempt) {
            close(socket)
            return ProbeResult(id: attempt.id, errno: number, call: "setsockopt")
        }
        if connect(socket, to: attempt) != 0, errno != EINPROGRESS, errno != EINTR {
            let result = failure(attempt.id, errno: errno, call: "connect", socket: socket)
            close(socket)
            return result
        }
        // A handshake that is over already makes the descriptor ready at once: one way for both.
        let token = nextToken
        nextToken += 1
        do {
            try loop.add(socket, interest: .write, token: token)
        } catch {
            close(socket)
            return ProbeResult(id: attempt.id, errno: error.errno, call: error.call)
        }
        connecting[token] = Connecting(attempt: attempt, socket: socket, started: now)
        tokens[attempt.id] = token
        return nil
    }

    /// Looks at a descriptor that the loop reported; tokens of attempts that are over are passed over.
    ///
    /// - Returns: the attempt's result, `nil` while there is none.
    package mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = connecting[ready.token] else { return nil }
        guard let result = outcome(of: connection, now: now) else { return nil }
        finish(connection, token: ready.token, on: loop)
        return result
    }

    /// Ends an attempt without a result.
    package mutating func cancel(_ id: UInt64, on loop: borrowing EventLoop) {
        guard let token = tokens[id], let connection = connecting[token] else {
            return waiting.removeAll { $0.id == id }
        }
        finish(connection, token: token, on: loop)
    }

    /// Ends all attempts without results.
    package mutating func closeAll() {
        for connection in connecting.values { close(connection.socket) }
        connecting = [:]
        tokens = [:]
        waiting = []
    }

    // A process that another thread forks may have the socket for a while: epoll would go on to report it (epoll(7)).
    private mutating func finish(_ connection: Connecting, token: UInt64, on loop: borrowing EventLoop) {
        loop.remove(connection.socket)
        close(connection.socket)
        connecting[token] = nil
        tokens[connection.attempt.id] = nil
    }
}

extension TCPProber {
    /// The errno of an option that a probe cannot do without; `nil` when all is well.
    private func prepare(_ socket: Int32, for attempt: ProbeAttempt) -> Int32? {
        // The three below make a probe better, and it is a probe without them too.
        set(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, 0 as Int32)
        set(socket, SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0))
        if attempt.address.family == .v4 {
            set(socket, Int32(IPPROTO_IP), Int32(IP_RECVERR), 1 as Int32)
        } else {
            set(socket, Int32(IPPROTO_IPV6), Int32(IPV6_RECVERR), 1 as Int32)
        }
        guard let interface = attempt.interface else { return nil }
        let bound = interface.utf8CString.withUnsafeBytes {
            setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, $0.baseAddress, socklen_t($0.count))
        }
        return bound == 0 ? nil : errno
    }

    private func set<Value>(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Value) {
        _ = withUnsafeBytes(of: value) { setsockopt(socket, level, option, $0.baseAddress, socklen_t($0.count)) }
    }

    private func connect(_ socket: Int32, to attempt: ProbeAttempt) -> Int32 {
        let bytes = attempt.address.bytes
        switch attempt.address.family {
        case .v4:
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = attempt.port.bigEndian
            withUnsafeMutableBytes(of: &name.sin_addr) { $0.copyBytes(from: bytes) }
            return connect(socket, name)
        case .v6:
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = attempt.port.bigEndian
            name.sin6_scope_id = attempt.zone
            withUnsafeMutableBytes(of: &name.sin6_addr) { $0.copyBytes(from: bytes) }
            return connect(socket, name)
        }
    }

    private func connect<Name>(_ socket: Int32, _ name: Name) -> Int32 {
        withUnsafeBytes(of: name) { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            return Glibc.connect(socket, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    private func outcome(of connection: Connecting, now: Moment) -> ProbeResult? {
        let id = connection.attempt.id
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &number, &size) == 0 else {
            return ProbeResult(id: id, errno: errno, call: "getsockopt")
        }
        if number != 0 { return failure(id, errno: number, call: "handshake", socket: connection.socket) }

        var info = tcp_info()
        size = socklen_t(MemoryLayout<tcp_info>.size)
        let known = getsockopt(connection.socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
        if known, Int(info.tcpi_state) == Int(TCP_SYN_SENT) {
            // Kernels differ in whether an ICMP message ends a connect; where it does not, it still is the answer.
            guard let record = report(of: connection.socket), record.errno != 0 else { return nil }
            return ProbeResult(id: id, errno: record.errno, call: "handshake", reporter: record.reporter)
        }
        var roundTrip = known ? Int64(info.tcpi_rtt) * 1000 : 0
        if roundTrip == 0 { roundTrip = max(1, now.elapsed(since: connection.started).saturatingNanoseconds) }
        return ProbeResult(id: id, roundTripNanoseconds: roundTrip)
    }

    private func failure(_ id: UInt64, errno number: Int32, call: String, socket: Int32) -> ProbeResult {
        ProbeResult(id: id, errno: number, call: call, reporter: report(of: socket)?.reporter)
    }

    /// The first ICMP message of the socket's error queue, else whatever else is there.
    private func report(of socket: Int32) -> (errno: Int32, reporter: ProbeResult.Reporter)? {
        var found: (Int32, ProbeResult.Reporter)?
        for _ in 0..<Self.recordsRead {
            var record = netwatch_socket_error()
            guard netwatch_read_error_queue(socket, &record) == 1 else { break }
            let isICMP = record.origin == UInt8(SO_EE_ORIGIN_ICMP) || record.origin == UInt8(SO_EE_ORIGIN_ICMP6)
            guard isICMP || found == nil else { continue }
            let bytes = withUnsafeBytes(of: record.offender) { Array($0) }
            let offender: IPAddress? =
                switch Int32(record.offender_family) {
                case AF_INET: IPAddress(bytes: bytes.prefix(4))
                case AF_INET6: IPAddress(bytes: bytes)
                default: nil
                }
            found = (
                Int32(clamping: record.error),
                ProbeResult.Reporter(origin: record.origin, type: record.type, code: record.code, offender: offender)
            )
            if isICMP { break }
        }
        return found
    }
}
