internal import CLinux
internal import EventLoop
internal import Glibc
internal import Pacing

/// The datagrams and connections that ask whether a host is alive, on the loop's thread and inside its network namespace.
///
/// A query is at most ``copies`` datagrams with one byte, and one TCP connection, to a port from the range of traceroute(8), which no
/// service uses. The error queues of the sockets have the answers and their senders (ip(7), IP_RECVERR). Every query has a reply; a host
/// that answers both questions has two.
struct HostProber: ~Copyable {
    /// The tokens of the prober's descriptors.
    private static let tokens: ClosedRange<UInt64> = (1 << 62)...(1 << 63)
    /// The number of datagrams of one query. Two of three may be lost.
    static let copies = 3
    /// The time between two datagrams in nanoseconds.
    static let copyGap: Int64 = 150_000_000
    /// The time after the last datagram in which an answer counts, in nanoseconds.
    static let patience: Int64 = 250_000_000
    /// The maximum number of simultaneous queries, which have two sockets each: 128, but at most an eighth of the descriptors that this
    /// process may open. Further ones are refused, which is no evidence.
    private let limit = min(128, max(DescriptorUse.currentLimit / 16, 1))
    private static let port: UInt16 = 33_434
    /// The port that is asked on this machine, where 33434 may be the port of a program: it is in the range from which the kernel
    /// chooses (ip_local_port_range). Only a privileged program can use port 1.
    private static let ownPort: UInt16 = 1
    /// The index of `lo` in each network namespace (`LOOPBACK_IFINDEX` of the kernel). Routes to this machine lead to it.
    private static let loopback: UInt32 = 1

    private struct Running {
        let query: HostQuery
        let socket: Int32
        /// The connection; `nil` after its answer, and if there is none.
        var connection: Int32?
        /// Whether the reply is given, and only the answer to the connection is awaited.
        var hasReplied = false
        /// The reply that waits for ``HostProber/counter``; `nil` if there is none.
        var held: HostReply?
        var sent = 1
        var due: Int64
    }

    private var running: [UInt64: Running] = [:]
    private var next = HostProber.tokens.lowerBound
    /// The count of packets that this machine drops, and the query to which it belongs. There is one at a time.
    private var counter: DropCounter?
    private var counted: UInt64?
    private var countNumber = 0

    deinit {
        for query in running.values { Self.close(query) }
    }

    private static func close(_ query: Running) {
        Glibc.close(query.socket)
        if let connection = query.connection { Glibc.close(connection) }
    }

    /// Returns whether a ready descriptor's token belongs, or belonged, to the prober.
    static func owns(_ token: UInt64) -> Bool { tokens.contains(token) }

    /// The time at which ``tick(on:now:)`` is due, in nanoseconds; `nil` if no query runs.
    var deadline: Int64? { running.values.map(\.due).min() }

    /// Starts a query. A reply with a count of dropped packets comes at its end.
    ///
    /// - Returns: the reply if it is known at once, otherwise `nil`.
    mutating func start(_ query: HostQuery, on loop: borrowing EventLoop, now: Int64) -> HostReply? {
        guard running.count < limit else { return HostReply(.refused, errno: EMFILE) }
        let token = next
        if query.port != nil, counted == nil {
            counter = DropCounter(query, size: DropCounter.sizes[countNumber % DropCounter.sizes.count])
            if counter != nil { counted = token }
            countNumber += 1
        }
        if let refusal = open(query, on: loop, now: now) {
            if counted == token { _ = takeCount() }
            return refusal
        }
        return nil
    }

    /// Sends the first datagram and the SYN. - Returns: the reply if the system refuses the datagram.
    private mutating func open(_ query: HostQuery, on loop: borrowing EventLoop, now: Int64) -> HostReply? {
        let family = query.host.address.family
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(family == .v4 ? AF_INET : AF_INET6, kind, 0)
        guard socket >= 0 else { return HostReply(.refused, errno: errno) }
        ErrorQueue.enable(on: socket, family)
        if query.isBound { SocketOptions.bind(socket, toIndex: query.host.interface) }
        let address = query.host.address
        let zone = address.isLinkLocal ? query.host.interface : 0
        if let refusal = SocketOptions.apply(query.selector, to: socket, zone: query.host.interface) {
            Glibc.close(socket)
            // EPERM is the answer of a packet filter.
            return HostReply(.refused, errno: refusal.errno == EPERM ? EACCES : refusal.errno)
        }
        let port = query.host.interface == Self.loopback ? Self.ownPort : Self.port
        guard SocketAddress(address, port: port, zone: zone).connect(socket) == 0, send(socket, "", 1, 0) >= 0 else {
            return refusal(socket)
        }
        do { try loop.add(socket, interest: .read, token: next) } catch {
            Glibc.close(socket)
            return HostReply(.refused, errno: error.errno)
        }
        // The datagrams alone show a packet filter of this machine.
        let connection = query.host.interface == Self.loopback ? nil : connect(query, on: loop)
        running[next] = Running(query: query, socket: socket, connection: connection, due: now.addingSaturated(Self.copyGap))
        next += 2
        return nil
    }

    private mutating func takeCount() -> DropCount? {
        counted = nil
        guard let counter = self.counter.take() else { return nil }
        return counter.finish()
    }

    /// Opens the connection, whose token is the one after that of the datagrams.
    private func connect(_ query: HostQuery, on loop: borrowing EventLoop) -> Int32? {
        let address = query.host.address
        let destination = HopSearch.Destination(address, port: Self.port, selector: query.selector)
        guard
            let descriptor = HopLimitedSocket.open(
                destination, zone: address.isLinkLocal ? query.host.interface : 0,
                boundTo: query.isBound ? query.host.interface : 0)
        else { return nil }
        do { try loop.add(descriptor, interest: .write, token: next + 1) } catch {
            Glibc.close(descriptor)
            return nil
        }
        return descriptor
    }

    private func refusal(_ socket: Int32) -> HostReply {
        let number = errno
        Glibc.close(socket)
        return HostReply(.refused, errno: number)
    }

    /// Handles a descriptor that the loop reported.
    ///
    /// - Returns: the query and its reply; `nil` while the query runs.
    mutating func ready(_ ready: EventLoop.Ready, on loop: borrowing EventLoop) -> (HostQuery, HostReply)? {
        let token = ready.token & ~1
        guard let query = running[token] else { return nil }
        if ready.token != token { return connectionReady(token, query, on: loop) }
        guard !query.hasReplied, let reply = reply(of: query) else { return nil }
        // The answer to the connection is known too if it comes: it is the one without a limit.
        if counted == token || reply.outcome == .answered && query.connection != nil {
            loop.remove(query.socket)
            running[token]?.hasReplied = true
        } else {
            finish(token, on: loop)
            return (query.query, reply)
        }
        return given(reply, to: token)
    }

    /// Returns a query with its reply, or keeps the reply until the packets are counted. An answer to the connection has precedence.
    private mutating func given(_ reply: HostReply, to token: UInt64) -> (HostQuery, HostReply)? {
        guard counted == token else { return running[token].map { ($0.query, reply) } }
        if running[token]?.held == nil || reply.question == .connection { running[token]?.held = reply }
        return nil
    }

    private mutating func connectionReady(
        _ token: UInt64, _ query: Running, on loop: borrowing EventLoop
    ) -> (HostQuery, HostReply)? {
        guard let connection = query.connection else { return nil }
        let answer = HopLimitedSocket.answer(of: connection, query.query.host.address.family)
        loop.remove(connection)
        Glibc.close(connection)
        running[token]?.connection = nil
        if query.hasReplied, counted != token { finish(token, on: loop) }
        guard case .destination = answer else { return nil }
        let reply = HostReply(.answered, to: .connection)
        if counted == token { return given(reply, to: token) }
        if !query.hasReplied { finish(token, on: loop) }
        return (query.query, reply)
    }

    private func reply(of query: Running) -> HostReply? {
        if let report = ErrorQueue.report(of: query.socket) {
            let host = query.query.host.address
            let isAnswer = report.reporter.offender == host && report.reporter.origin != 1
            if isAnswer { return HostReply(.answered, errno: report.errno, reporter: report.reporter, to: .datagram) }
            return HostReply(.reported, errno: report.errno, reporter: report.reporter)
        }
        var byte: UInt8 = 0
        let count = recv(query.socket, &byte, 1, 0)
        if count >= 0 { return HostReply(.answered, to: .datagram) }
        switch errno {
        case EAGAIN, EINTR: return nil
        // The ICMP message arrived after the error queue was read; its sender is the connected host or a router.
        case ECONNREFUSED: return HostReply(.answered, errno: ECONNREFUSED, to: .datagram)
        default: return HostReply(.reported, errno: errno)
        }
    }

    /// Sends further datagrams, and ends the queries that no host has answered.
    mutating func tick(on loop: borrowing EventLoop, now: Int64) -> [(HostQuery, HostReply)] {
        guard let deadline, deadline <= now else { return [] }
        var replies: [(HostQuery, HostReply)] = []
        for (token, query) in running.sorted(by: { $0.key < $1.key }) where query.due <= now {
            let isCounted = counted == token
            if isCounted { counter?.answersHaveArrived() }
            if query.hasReplied, !isCounted {
                finish(token, on: loop)
            } else if query.sent < Self.copies {
                // A failure, for example by an error of the former datagram, makes the socket ready.
                if query.held == nil { _ = send(query.socket, "", 1, 0) }
                running[token]?.sent += 1
                running[token]?.due = now.addingSaturated(query.sent + 1 < Self.copies ? Self.copyGap : Self.patience)
            } else {
                var reply = query.held ?? reply(of: query) ?? HostReply(.silent)
                if isCounted { reply.drops = takeCount() }
                replies.append((query.query, reply))
                finish(token, on: loop)
            }
        }
        return replies
    }

    /// Ends all queries without replies.
    mutating func closeAll() {
        for query in running.values { Self.close(query) }
        running = [:]
        _ = takeCount()
    }

    private mutating func finish(_ token: UInt64, on loop: borrowing EventLoop) {
        guard let query = running.removeValue(forKey: token) else { return }
        if !query.hasReplied { loop.remove(query.socket) }
        if let connection = query.connection { loop.remove(connection) }
        Self.close(query)
    }
}
