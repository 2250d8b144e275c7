import COpenSSL
package import EventLoop
import Glibc

/// Why a connection's thread ends its work.
package enum ChannelEnd: Error {
    /// The server stops.
    case stopped
    /// The client has closed or reset the connection, or has broken the protocol.
    case clientLeft
}

/// One connection, plain or encrypted, as its one thread uses it: calls block, until the server stops.
// Not Sendable: it belongs to its thread.
package final class Channel {
    private let socket: Descriptor
    private let stop: Waker
    private var tls: OpaquePointer?
    private var isOver = false

    /// - Parameters:
    ///   - socket: a connected socket that does not block.
    ///   - stop: a descriptor that becomes readable when the server stops.
    package init(_ socket: Descriptor, stop: Waker) {
        self.socket = socket
        self.stop = stop
        var on: Int32 = 1
        // Pieces that are written separately are sent separately. Unix sockets refuse the option and do so anyway.
        setsockopt(socket.number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit {
        if let tls { SSL_free(tls) }
    }

    // MARK: Waiting

    /// Waits until the socket is ready for `events` (of poll(2)); false when CLOCK_MONOTONIC reached `deadline` first.
    @discardableResult
    package func awaitReadiness(_ events: Int32, until deadline: Int64? = nil) throws(ChannelEnd) -> Bool {
        try poll(events, extra: -1, until: deadline).socket
    }

    /// Waits without sending. Throws early if the client closes the connection.
    package func wait(_ wait: StubResponse.Wait) throws(ChannelEnd) {
        switch wait {
        case .delay(let duration): try self.wait(until: MonotonicClock.now() + duration.nanoseconds)
        case .gate(let gate): try hold(until: nil, gate: gate)
        case .forever: try hold(until: nil, gate: nil)
        }
    }

    /// Waits until CLOCK_MONOTONIC reaches a moment.
    package func wait(until deadline: Int64) throws(ChannelEnd) {
        try hold(until: deadline, gate: nil)
    }

    /// Waits for the next bytes of the client, or for the gate; `true` if the gate was first.
    package func awaitBytes(or gate: Gate?) throws(ChannelEnd) -> Bool {
        if let tls, SSL_has_pending(tls) == 1 { return false }
        return try poll(POLLIN, extra: gate?.descriptor ?? -1, until: nil).extra
    }

    /// Waits until this side (unless it has ended) or the other side has bytes to read.
    package func awaitEither(_ other: Channel, isClientOpen: Bool) throws(ChannelEnd) -> (own: Bool, other: Bool) {
        if isClientOpen, let tls, SSL_has_pending(tls) == 1 { return (true, false) }
        let ready = try poll(isClientOpen ? POLLIN : 0, extra: other.socket.number, until: nil)
        if ready.socket && !isClientOpen { throw .clientLeft }
        return (ready.socket, ready.extra)
    }

    private func hold(until deadline: Int64?, gate: Gate?) throws(ChannelEnd) {
        // POLLRDHUP, behind _GNU_SOURCE: the client has closed, even where bytes of it are still unread.
        let ready = try poll(0x2000, extra: gate?.descriptor ?? -1, until: deadline)
        if ready.socket && !ready.extra { throw .clientLeft }
    }

    private func poll(_ events: Int32, extra: Int32, until deadline: Int64?) throws(ChannelEnd) -> (socket: Bool, extra: Bool) {
        var polled = [
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket.number, events: Int16(events), revents: 0),
            pollfd(fd: extra, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            var milliseconds: Int32 = -1
            if let deadline {
                let left = deadline - MonotonicClock.now()
                milliseconds = left <= 0 ? 0 : Int32(clamping: (left + 999_999) / 1_000_000)
            }
            let count = Glibc.poll(&polled, nfds_t(polled.count), milliseconds)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0, polled[0].revents == 0 else { throw .stopped }
            if count == 0 && milliseconds != 0 { continue }
            return (polled[1].revents != 0, polled[2].revents != 0)
        }
    }

    // MARK: TLS

    /// Performs the server's side of the TLS handshake.
    package func handshake(_ context: TLSServerContext) throws(ChannelEnd) -> ReceivedRequest.TLSDetails {
        guard let tls = SSL_new(context.pointer) else { throw .clientLeft }
        self.tls = tls
        SSL_set_fd(tls, socket.number)
        while case let code = SSL_accept(tls), code != 1 { try awaitTLS(code) }
        return TLSServerContext.details(of: tls)
    }

    /// Waits until the socket is ready as OpenSSL wants it, before the call is repeated.
    private func awaitTLS(_ code: Int32) throws(ChannelEnd) {
        switch SSL_get_error(tls, code) {
        case SSL_ERROR_WANT_READ: try awaitReadiness(POLLIN)
        case SSL_ERROR_WANT_WRITE: try awaitReadiness(POLLOUT)
        default:
            // After an error SSL_shutdown must not be called, and the queue belongs to the thread's next call.
            ERR_clear_error()
            isOver = true
            throw .clientLeft
        }
    }

    // MARK: Bytes

    /// The next bytes, at most 64 KiB; empty when the client has ended its side.
    package func read() throws(ChannelEnd) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            if let tls {
                let count = SSL_read(tls, &buffer, Int32(buffer.count))
                if count > 0 { return Array(buffer[..<Int(count)]) }
                if SSL_get_error(tls, count) == SSL_ERROR_ZERO_RETURN { return [] }
                try awaitTLS(count)
            } else {
                let count = recv(socket.number, &buffer, buffer.count, 0)
                if count > 0 { return Array(buffer[..<count]) }
                if count == 0 { return [] }
                try awaitSocket(POLLIN)
            }
        }
    }

    /// Sends all of the bytes.
    package func write(_ bytes: some Sequence<UInt8>) throws(ChannelEnd) {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            if let tls {
                let count = rest.withUnsafeBytes { SSL_write(tls, $0.baseAddress, Int32(clamping: $0.count)) }
                if count > 0 { rest = rest.dropFirst(Int(count)) } else { try awaitTLS(count) }
            } else {
                let count = rest.withUnsafeBytes { send(socket.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                if count > 0 { rest = rest.dropFirst(count) } else { try awaitSocket(POLLOUT) }
            }
        }
    }

    /// Sends the UTF-8 of a text.
    package func write(_ text: String) throws(ChannelEnd) {
        try write(text.utf8)
    }

    private func awaitSocket(_ events: Int32) throws(ChannelEnd) {
        switch errno {
        case EAGAIN: try awaitReadiness(events)
        case EINTR: break
        default: throw .clientLeft
        }
    }

    /// The written bytes that have not been transmitted, and those that the other side's kernel has not acknowledged, which include them.
    /// It works after the end of the connection too.
    package var pendingBytes: (untransmitted: Int64, unacknowledged: Int64) {
        func count(_ request: UInt) -> Int64 {
            var count: Int32 = 0
            return ioctl(socket.number, request, &count) == 0 ? Int64(count) : 0
        }
        // SIOCOUTQNSD (linux/sockios.h) and SIOCOUTQ (tcp(7)).
        return (count(0x894B), count(UInt(TIOCOUTQ)))
    }

    // MARK: The end

    /// Ends the connection. The descriptor closes with the channel.
    package func end(_ ending: StubResponse.Ending) {
        if ending == .reset {
            // The last close then sends RST (socket(7)).
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(socket.number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            return
        }
        if let tls, ending == .orderly, !isOver { SSL_shutdown(tls) }
        shutdown(socket.number, Int32(SHUT_WR))
        drain()
    }

    /// Sends FIN and continues to read.
    package func endWriting() {
        shutdown(socket.number, Int32(SHUT_WR))
    }

    /// Reads what the client still sends until it closes, for two seconds at most. Closing a socket with unread bytes resets it, and a
    /// reset may destroy bytes that the client has not read yet.
    private func drain() {
        let deadline = MonotonicClock.now() + 2_000_000_000
        var buffer = [UInt8](repeating: 0, count: 65536)
        while case .some(true) = try? awaitReadiness(POLLIN, until: deadline) {
            let count = recv(socket.number, &buffer, buffer.count, 0)
            guard count > 0 || (count < 0 && errno == EAGAIN) else { return }
        }
    }
}

extension Duration {
    /// The duration in nanoseconds; half of the largest number beyond 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? Int64.max / 2 : product + attoseconds / 1_000_000_000
    }
}
