internal import CLinux
internal import EventLoop
internal import Glibc

/// A TCP connection with a hop limit, which needs no privilege: the router where the limit ends reports it by ICMP, and the error queue
/// of the socket names the router (ip(7), IP_RECVERR).
enum HopLimitedSocket {
    /// An answer to the SYN.
    enum Answer {
        /// A router discarded the SYN because of its hop limit (ICMP type 11, ICMPv6 type 3).
        case exceeded(IPAddress)
        /// A router reports another failure.
        case refused(IPAddress)
        /// The destination accepted or refused the connection.
        case destination
    }

    /// Opens a socket, and sends the SYN.
    ///
    /// - Parameters:
    ///   - destination: the end of the connection.
    ///   - hopLimit: the hop limit; `nil` for the usual one.
    ///   - zone: the interface of a link-local address; 0 for others.
    ///   - index: the interface to which the socket is bound (SO_BINDTOIFINDEX); 0 for none.
    /// - Returns: the descriptor; `nil` if the system refuses it.
    static func open(
        _ destination: HopSearch.Destination, hopLimit: Int? = nil, zone: UInt32 = 0, boundTo index: UInt32 = 0
    ) -> Int32? {
        let isIPv4 = destination.address.family == .v4
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = Glibc.socket(isIPv4 ? AF_INET : AF_INET6, kind, Int32(IPPROTO_TCP))
        guard descriptor >= 0 else { return nil }
        SocketOptions.closeByReset(descriptor)
        ErrorQueue.enable(on: descriptor, destination.address.family)
        var isReady = true
        if let hopLimit {
            var value = Int32(hopLimit)
            let (level, option) = isIPv4 ? (IPPROTO_IP, IP_TTL) : (IPPROTO_IPV6, IPV6_UNICAST_HOPS)
            isReady = setsockopt(descriptor, Int32(level), Int32(option), &value, socklen_t(MemoryLayout<Int32>.size)) == 0
        }
        if isReady, let interface = destination.interface {
            isReady = SocketOptions.bind(descriptor, to: interface) == nil
        }
        if index != 0 { SocketOptions.bind(descriptor, toIndex: index) }
        isReady = isReady && SocketOptions.apply(destination.selector, to: descriptor, zone: zone != 0 ? zone : index) == nil
        guard isReady else {
            close(descriptor)
            return nil
        }
        // The result is in the error queue and in SO_ERROR.
        _ = SocketAddress(destination.address, port: destination.port, zone: zone).connect(descriptor)
        return descriptor
    }

    /// Returns the answer that a socket has; `nil` if it has none, or a failure of this machine.
    static func answer(of descriptor: Int32, _ family: IPAddress.Family) -> Answer? {
        if let reporter = ErrorQueue.report(of: descriptor)?.reporter {
            guard reporter.origin != 1, let offender = reporter.offender else { return nil }
            let timeExceeded: UInt8 = family == .v4 ? 11 : 3
            return reporter.type == timeExceeded ? .exceeded(offender) : .refused(offender)
        }
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size) == 0 else { return nil }
        if number == ECONNREFUSED || number == ECONNRESET { return .destination }
        guard number == 0 else { return nil }
        // Without an error, only a completed handshake is an answer.
        var info = tcp_info()
        size = socklen_t(MemoryLayout<tcp_info>.size)
        guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0,
            Int(info.tcpi_state) == Int(TCP_ESTABLISHED)
        else { return nil }
        return .destination
    }
}
