internal import CLinux
internal import EventLoop
internal import Glibc
internal import Pacing

/// The UDP datagrams that ask whether a host is alive, on the loop's thread and inside its network namespace.
///
/// A query is at most ``copies`` datagrams with one byte, to a port from the range of traceroute(8), which no service uses. The error
/// queue of the socket has the answer and its sender (ip(7), IP_RECVERR). Every query ends with a reply.
struct HostProber: ~Copyable {
    /// The tokens of the prober's descriptors.
    private static let tokens: ClosedRange<UInt64> = (1 << 62)...(1 << 63)
    /// The number of datagrams of one query. Two of three may be lost.
    static let copies = 3
    /// The time between two datagrams in nanoseconds.
    static let copyGap: Int64 = 150_000_000
    /// The time after the last datagram in which an answer counts, in nanoseconds.
    static let patience: Int64 = 250_000_000
    /// The maximum number of simultaneous queries: 128, but at most an eighth of the descriptors that this process may open. Further
    /// ones are refused, which is no evidence.
    private let limit = min(128, max(DescriptorUse.currentLimit / 8, 1))
    private static let port: UInt16 = 33_434
    /// The port that is asked on this machine, where 33434 may be the port of a program: it is in the range from which the kernel
    /// chooses (ip_local_port_range). Only a privileged program can use port 1.
    private static let ownPort: UInt16 = 1
    /// The index of `lo` in each network namespace (`LOOPBACK_IFINDEX` of the kernel). Routes to this machine lead to it.
    private static let loopback: UInt32 = 1

    private struct Running {
        let query: HostQuery
        let socket: Int32
        var sent = 1
        var due: Int64
    }

    private var running: [UInt64: Running] = [:]
    private var next = HostProber.tokens.lowerBound

    deinit {
        for query in running.values { close(query.socket) }
    }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the prober.
    static func owns(_ token: UInt64) -> Bool { tokens.contains(token) }

    /// The time at which ``tick(on:now:)`` is due, in nanoseconds; `nil` if no query runs.
    var deadline: Int64? { running.values.map(\.due).min() }

    /// Starts a query.
    ///
    /// - Returns: the reply if it is known at once, otherwise `nil`.
    mutating func start(_ query: HostQuery, on loop: borrowing EventLoop, now: Int64) -> HostReply? {
        guard running.count < limit else { return HostReply(.refused, errno: EMFILE) }
        let family = query.host.address.family
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family == .v4 ? AF_INET : AF_INET6, kind, 0)
        guard socket >= 0 else { return HostReply(.refused, errno: errno) }
        ErrorQueue.enable(on: socket, family)
        if query.isBound {
            // Without the option the kernel's own route is used, which for a first hop is usually the same.
            var index = Int32(bitPattern: query.host.interface)
            setsockopt(socket, SOL_SOCKET, 62, &index, socklen_t(MemoryLayout<Int32>.size))  // SO_BINDTOIFINDEX
        }
        let address = query.host.address
        let zone = address.isLinkLocal ? query.host.interface : 0
        let port = query.host.interface == Self.loopback ? Self.ownPort : Self.port
        guard SocketAddress(address, port: port, zone: zone).connect(socket) == 0, send(socket, "", 1, 0) >= 0 else {
            return refusal(socket)
        }
        do { try loop.add(socket, interest: .read, token: next) } catch {
            close(socket)
            return HostReply(.refused, errno: error.errno)
        }
        running[next] = Running(query: query, socket: socket, due: now.addingSaturated(Self.copyGap))
        next += 1
        return nil
    }

    private func refusal(_ socket: Int32) -> HostReply {
        let number = errno
        close(socket)
        return HostReply(.refused, errno: number)
    }

    /// Handles a descriptor that the loop reported.
    ///
    /// - Returns: the query and its reply; `nil` while the query runs.
    mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop) -> (HostQuery, HostReply)? {
        guard let query = running[ready.token] else { return nil }
        guard let reply = reply(of: query) else { return nil }
        finish(ready.token, on: loop)
        return (query.query, reply)
    }

    private func reply(of query: Running) -> HostReply? {
        if let report = ErrorQueue.report(of: query.socket) {
            let host = query.query.host.address
            let isAnswer = report.reporter.offender == host && report.reporter.origin != 1
            if isAnswer { return HostReply(.answered, errno: report.errno, reporter: report.reporter) }
            return HostReply(.reported, errno: report.errno, reporter: report.reporter)
        }
        var byte: UInt8 = 0
        let count = recv(query.socket, &byte, 1, 0)
        if count >= 0 { return HostReply(.answered) }
        switch errno {
        case EAGAIN, EINTR: return nil
        // The ICMP message arrived after the error queue was read; its sender is the connected host or a router.
        case ECONNREFUSED: return HostReply(.answered, errno: ECONNREFUSED)
        default: return HostReply(.reported, errno: errno)
        }
    }

    /// Sends further datagrams, and ends the queries that no host has answered.
    mutating func tick(on loop: borrowing EventLoop, now: Int64) -> [(HostQuery, HostReply)] {
        guard let deadline, deadline <= now else { return [] }
        var replies: [(HostQuery, HostReply)] = []
        for (token, query) in running.sorted(by: { $0.key < $1.key }) where query.due <= now {
            if query.sent < Self.copies {
                // A failure, for example by an error of the former datagram, makes the socket ready.
                _ = send(query.socket, "", 1, 0)
                running[token]?.sent += 1
                running[token]?.due = now.addingSaturated(query.sent + 1 < Self.copies ? Self.copyGap : Self.patience)
            } else {
                replies.append((query.query, reply(of: query) ?? HostReply(.silent)))
                finish(token, on: loop)
            }
        }
        return replies
    }

    /// Ends all queries without replies.
    mutating func closeAll() {
        for query in running.values { close(query.socket) }
        running = [:]
    }

    private mutating func finish(_ token: UInt64, on loop: borrowing EventLoop) {
        guard let query = running.removeValue(forKey: token) else { return }
        loop.remove(query.socket)
        close(query.socket)
    }
}
