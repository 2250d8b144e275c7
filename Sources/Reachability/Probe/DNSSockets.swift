internal import CLinux
internal import EventLoop
internal import Glibc

/// The sockets of a c-ares channel, and the evidence that they show: errnos, ICMP messages and response codes.
///
/// c-ares reports only one status for all these, and tries the next server in the meantime (ares_set_socket_functions(3)).
/// Descriptors are registered in the loop after the call of c-ares has returned, by ``synchronize(on:)``.
final class DNSSockets {
    /// A name server, and what its sockets have shown.
    final class Server {
        let address: ResolverConfiguration.Nameserver
        /// The number of messages that answered no question.
        var strayCount = 0
        /// The last failure to open a socket; `nil` once one was opened.
        var failure: (call: String, errno: Int32)?
        /// The scope of the last refusal by this machine, and its time.
        var refusal: (scope: NameServerExchange.Scope, time: Int64)?

        init(_ address: ResolverConfiguration.Nameserver) { self.address = address }
    }

    private struct Socket {
        let family: IPAddress.Family
        let isStream: Bool
        var server: Server?
        var interest: EventLoop.Interest = []
        /// The interest that the loop has; `nil` if the descriptor is not registered.
        var registered: EventLoop.Interest?
        var token: UInt64 = 0
        /// The position in a TCP stream: the bytes of the length, then those of the message.
        var lengthBytes = 0
        var remaining = 0
        var isAtStart = false
    }

    /// The size of a message's header (RFC 1035 section 4.1.1).
    static let headerSize = 12
    /// The response code SERVFAIL, after which c-ares asks the next server.
    private static let serverFailure: UInt8 = 2
    /// A port that name servers do not use: discard (RFC 863).
    private static let otherPort: UInt16 = 9
    /// The receive buffer. A socket receives the answers to all questions to one server.
    private static let bufferSize: Int32 = 1 << 20
    /// The maximum number of reads in one call of c-ares, which otherwise reads until no datagram is left.
    private static let readLimit = 512
    /// The time in nanoseconds for which the answer to a question that has ended is expected, and not a sign of a bad server.
    private static let lateTime: Int64 = 10_000_000_000

    let servers: [Server]
    /// The open questions by their number.
    private(set) var questions: [UInt16: DNSQuestion] = [:]
    private var ended: [UInt16: Int64] = [:]
    private var lastSweep: Int64 = 0
    private var sockets: [Int32: Socket] = [:]
    private var changed: Set<Int32> = []
    private var closing: [(descriptor: Int32, isRegistered: Bool)] = []
    private var descriptors: [UInt64: Int32] = [:]
    private var readsLeft = DNSSockets.readLimit
    private var makeToken: () -> UInt64

    /// Creates the sockets of a channel. `makeToken` returns an unused token for the loop.
    init(_ nameservers: [ResolverConfiguration.Nameserver], makeToken: @escaping () -> UInt64) {
        servers = nameservers.map(Server.init)
        self.makeToken = makeToken
    }

    deinit {
        for descriptor in sockets.keys { _ = Glibc.close(descriptor) }
        for closed in closing { _ = Glibc.close(closed.descriptor) }
    }

    /// Returns the descriptor of a token; `nil` if the socket was closed.
    func descriptor(of token: UInt64) -> Int32? { descriptors[token] }

    /// Begins a call of c-ares.
    func beginCall() { readsLeft = Self.readLimit }

    /// Registers the changed sockets in the loop, and closes those that c-ares has closed. Closing them later keeps their numbers
    /// from being used again within one call.
    func synchronize(on loop: borrowing EventLoop) {
        for closed in closing {
            // A process forked by another thread may still hold the socket, and epoll would continue to report it (epoll(7)).
            if closed.isRegistered { loop.remove(closed.descriptor) }
            _ = Glibc.close(closed.descriptor)
        }
        closing = []
        for descriptor in changed {
            guard var socket = sockets[descriptor], socket.registered != socket.interest else { continue }
            if socket.interest.isEmpty {
                if socket.registered != nil { loop.remove(descriptor) }
                socket.registered = nil
            } else if socket.registered != nil {
                try? loop.change(descriptor, interest: socket.interest, token: socket.token)
                socket.registered = socket.interest
            } else {
                // Without a registration, the questions end by their timeouts.
                try? loop.add(descriptor, interest: socket.interest, token: socket.token)
                socket.registered = socket.interest
            }
            sockets[descriptor] = socket
        }
        changed = []
    }

    // MARK: Questions

    func begin(_ question: DNSQuestion) { questions[question.number] = question }

    func end(_ question: DNSQuestion) {
        questions[question.number] = nil
        let now = MonotonicClock.now()
        // Old numbers are removed once in a while: at most every number is there.
        if now - lastSweep > Self.lateTime {
            lastSweep = now
            ended = ended.filter { $0.value + Self.lateTime > now }
        }
        ended[question.number] = now
    }

    /// Returns whether a number is neither in use nor was used a moment ago.
    func isFree(_ number: UInt16) -> Bool { questions[number] == nil && (ended[number] == nil || ended.count > 32_768) }

    // MARK: The functions of c-ares

    func open(_ family: Int32, _ type: Int32, _ protocolNumber: Int32) -> Int32 {
        let isStream = type == Int32(SOCK_STREAM.rawValue)
        let kind = type | Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = Glibc.socket(family, kind, protocolNumber)
        let family: IPAddress.Family = family == AF_INET ? .v4 : .v6
        guard descriptor >= 0 else {
            let number = Glibc.errno
            for server in servers where server.address.address.family == family { server.failure = ("socket", number) }
            return Self.fail(number)
        }
        ErrorQueue.enable(on: descriptor, family)
        if !isStream {
            var size = Self.bufferSize
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        let token = makeToken()
        sockets[descriptor] = Socket(family: family, isStream: isStream, token: token)
        descriptors[token] = descriptor
        return descriptor
    }

    func close(_ descriptor: Int32) {
        guard let socket = sockets.removeValue(forKey: descriptor) else { return }
        changed.remove(descriptor)
        descriptors[socket.token] = nil
        closing.append((descriptor, socket.registered != nil))
    }

    func setInterest(_ descriptor: Int32, reads: Bool, writes: Bool) {
        sockets[descriptor]?.interest = reads ? (writes ? [.read, .write] : .read) : (writes ? .write : [])
        changed.insert(descriptor)
    }

    func connect(_ descriptor: Int32, to name: UnsafeRawBufferPointer) -> Int32 {
        guard let family = sockets[descriptor]?.family,
            let server = servers.first(where: { $0.address.address == Self.address(in: name, family) })
        else { return Self.fail(EINVAL) }
        sockets[descriptor]?.server = server
        // c-ares knows no zones.
        guard Self.connect(descriptor, to: server.address, port: server.address.port) != 0 else {
            server.failure = nil
            return 0
        }
        let number = Glibc.errno
        if number == EINPROGRESS { return Self.fail(number) }
        server.failure = ("connect", number)
        for question in questions.values where question.waits(for: server, overTCP: sockets[descriptor]?.isStream ?? false) {
            question.failed(server, "connect", errno: number, nil)
        }
        return Self.fail(number)
    }

    func send(_ descriptor: Int32, _ vectors: UnsafeBufferPointer<iovec>) -> Int {
        guard let socket = sockets[descriptor], let server = socket.server else { return Int(Self.fail(EBADF)) }
        let asked = vectors.compactMap { vector -> DNSQuestion? in
            let bytes = UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len)
            // A message in a stream begins with its length. Remainders of earlier messages are of no interest.
            let start = socket.isStream ? 2 : 0
            guard bytes.count >= start + Self.headerSize else { return nil }
            return questions[UInt16(bytes[start]) << 8 | UInt16(bytes[start + 1])]
        }
        for question in asked { question.sent(to: server, overTCP: socket.isStream) }
        var count = writev(descriptor, vectors.baseAddress, Int32(vectors.count))
        if count >= 0 { return count }
        var number = Glibc.errno
        if !socket.isStream, number != EPERM, number != EAGAIN {
            // The error may be that of an earlier datagram, which the call reports once. It concerns all who wait for an answer.
            noteError(number, ErrorQueue.report(of: descriptor)?.reporter, server, overTCP: false)
            count = writev(descriptor, vectors.baseAddress, Int32(vectors.count))
            if count >= 0 { return count }
            number = Glibc.errno
        }
        // A full send buffer loses the datagram, as the network may; c-ares repeats it. c-ares itself would skip the server.
        if number == EAGAIN, !socket.isStream { return vectors.reduce(0) { $0 + $1.iov_len } }
        guard number != EAGAIN else { return Int(Self.fail(EAGAIN)) }
        let reporter = ErrorQueue.report(of: descriptor)?.reporter
        for question in asked { question.failed(server, "send", errno: number, reporter) }
        if number == EPERM, reporter == nil, !socket.isStream {
            let scope = scope(of: server)
            for question in asked { question.refused(by: server, scope: scope) }
        }
        return Int(Self.fail(number))
    }

    func receive(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, from name: UnsafeMutablePointer<sockaddr>?,
        _ nameSize: UnsafeMutablePointer<socklen_t>?
    ) -> Int {
        guard let socket = sockets[descriptor], let server = socket.server else { return Int(Self.fail(EBADF)) }
        guard readsLeft > 0 else { return Int(Self.fail(EAGAIN)) }
        readsLeft -= 1
        let count = recvfrom(descriptor, buffer.baseAddress, buffer.count, 0, name, nameSize)
        if count > 0 {
            let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            if socket.isStream { readStream(descriptor, bytes) } else { read(bytes, from: server) }
            return count
        }
        // The end of a stream counts as a reset.
        var number = count == 0 ? ECONNRESET : Glibc.errno
        if count == 0, !socket.isStream {
            // c-ares would take an empty datagram for an error.
            server.strayCount += 1
            return Int(Self.fail(EAGAIN))
        }
        // The message may be queued while the socket has no error: another call has taken it.
        let report = ErrorQueue.report(of: descriptor)
        if number == EAGAIN { number = report?.errno ?? EAGAIN }
        guard number != EAGAIN else { return Int(Self.fail(EAGAIN)) }
        noteError(number, report?.reporter, server, overTCP: socket.isStream)
        return count == 0 ? 0 : Int(Self.fail(number))
    }

    // MARK: Evidence

    /// Notes an error of a socket for all questions that wait for an answer on it.
    private func noteError(_ number: Int32, _ reporter: ProbeResult.Reporter?, _ server: Server, overTCP: Bool) {
        for question in questions.values where question.waits(for: server, overTCP: overTCP) {
            question.failed(server, "receive", errno: number, reporter)
        }
    }

    /// Reads the header of a message. A referral is given to c-ares as SERVFAIL: it would take it for an answer that the name has no address.
    private func read(_ bytes: UnsafeMutableRawBufferPointer, from server: Server) {
        guard bytes.count >= Self.headerSize, bytes[2] & 0x80 != 0 else { return server.strayCount += 1 }
        let number = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
        guard let question = questions[number] else {
            // An answer may arrive after the question has ended.
            if ended[number] == nil { server.strayCount += 1 }
            return
        }
        // Servers may change the case of letters in the question.
        let asked = question.message
        let isSame =
            bytes.count >= asked.count
            && asked.indices.dropFirst(Self.headerSize).allSatisfy { Self.lowercase(asked[$0]) == Self.lowercase(bytes[$0]) }
        // A server that cannot read the question may leave it out. c-ares ignores such an answer.
        guard isSame else { return server.strayCount += 1 }
        let isTruncated = bytes[2] & 0x02 != 0
        if isTruncated { question.truncated(by: server) } else { note(bytes, by: server, question) }
    }

    /// Notes the answer to a question.
    private func note(_ message: UnsafeMutableRawBufferPointer, by server: Server, _ question: DNSQuestion) {
        let isReferral = NegativeAnswer.isReferral(message)
        question.answered(by: server, rcode: message[3] & 0x0f, isReferral: isReferral)
        if isReferral { message[3] |= Self.serverFailure }
    }

    /// Follows the messages of a stream. c-ares reads the length first, then the message in any number of parts.
    private func readStream(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer) {
        guard var socket = sockets[descriptor], let server = socket.server else { return }
        if socket.lengthBytes < 2 {
            for byte in bytes.prefix(2 - socket.lengthBytes) {
                socket.remaining = socket.remaining << 8 | Int(byte)
                socket.lengthBytes += 1
            }
            socket.isAtStart = true
        } else {
            // The beginning of a message is one segment, except with a server that sends single bytes.
            if socket.isAtStart, bytes.count >= 4, let question = questions[UInt16(bytes[0]) << 8 | UInt16(bytes[1])],
                question.waits(for: server, overTCP: true), bytes[2] & 0x80 != 0
            {
                note(bytes, by: server, question)
            }
            socket.isAtStart = false
            socket.remaining -= bytes.count
            if socket.remaining <= 0 { (socket.lengthBytes, socket.remaining) = (0, 0) }
        }
        sockets[descriptor] = socket
    }

    /// Finds out whether this machine also refuses datagrams to another port of the server. Asked at most once a second.
    private func scope(of server: Server) -> NameServerExchange.Scope {
        let now = MonotonicClock.now()
        if let refusal = server.refusal, now - refusal.time < 1_000_000_000 { return refusal.scope }
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = Glibc.socket(server.address.address.family == .v4 ? AF_INET : AF_INET6, kind, 0)
        guard descriptor >= 0 else { return .port }
        defer { _ = Glibc.close(descriptor) }
        let isRefused =
            Self.connect(descriptor, to: server.address, port: Self.otherPort) == 0
            && Glibc.send(descriptor, "", 0, 0) < 0 && Glibc.errno == EPERM
        let scope = isRefused ? NameServerExchange.Scope.address : .port
        server.refusal = (scope, now)
        return scope
    }

    // MARK: Addresses

    // c-ares reads errno after each call. Nothing may come between this function and the return.
    private static func fail(_ number: Int32) -> Int32 {
        Glibc.errno = number
        return -1
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte }

    private static func address(in name: UnsafeRawBufferPointer, _ family: IPAddress.Family) -> IPAddress? {
        switch family {
        case .v4 where name.count >= MemoryLayout<sockaddr_in>.size:
            withUnsafeBytes(of: name.loadUnaligned(as: sockaddr_in.self).sin_addr) { IPAddress(bytes: $0) }
        case .v6 where name.count >= MemoryLayout<sockaddr_in6>.size:
            withUnsafeBytes(of: name.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { IPAddress(bytes: $0) }
        default: nil
        }
    }

    private static func connect(_ descriptor: Int32, to server: ResolverConfiguration.Nameserver, port: UInt16) -> Int32 {
        let zone = server.zone.map { UInt32($0) ?? if_nametoindex($0) } ?? 0
        return SocketAddress(server.address, port: port, zone: server.address.family == .v6 ? zone : 0).connect(descriptor)
    }
}
