internal import CLinux
internal import EventLoop
internal import Glibc

/// The options that the sockets of probes share (socket(7)).
enum SocketOptions {
    /// Binds a socket to an interface (SO_BINDTODEVICE). Returns an errno; `nil` on success.
    static func bind(_ socket: Int32, to interface: String) -> Int32? {
        let result = interface.utf8CString.withUnsafeBytes {
            setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, $0.baseAddress, socklen_t($0.count))
        }
        return result == 0 ? nil : errno
    }

    /// Binds a socket to the interface with an index (SO_BINDTOIFINDEX, Linux 5.1). Before, the kernel's own route is used, which for a first hop
    /// is usually the same.
    static func bind(_ socket: Int32, toIndex interface: UInt32) {
        var index = Int32(bitPattern: interface)
        setsockopt(socket, SOL_SOCKET, 62, &index, socklen_t(MemoryLayout<Int32>.size))
    }

    /// A call for a socket that failed.
    struct Refusal: Hashable {
        let call: String
        let errno: Int32
    }

    /// Gives the packets of a socket their mark and their source address, before it is connected. - Parameter zone: the interface of the route, which a
    /// link-local source address needs. - Returns: the call that failed; `nil` on success.
    static func apply(_ selector: RouteSelector?, to socket: Int32, zone: UInt32 = 0) -> Refusal? {
        guard let selector else { return nil }
        var mark = selector.mark
        if mark != 0, setsockopt(socket, SOL_SOCKET, SO_MARK, &mark, socklen_t(MemoryLayout<UInt32>.size)) != 0 {
            return Refusal(call: ProbeResult.markOption, errno: errno)
        }
        guard let source = selector.source else { return nil }
        // The port is chosen by connect(2), so that connections to different servers may have the same one (ip(7)). Other sockets refuse the option.
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &on, socklen_t(MemoryLayout<Int32>.size))
        guard SocketAddress(source, port: 0, zone: source.isLinkLocal ? zone : 0).bind(socket) == 0 else {
            return Refusal(call: ProbeResult.bind, errno: errno)
        }
        return nil
    }

    /// Closes a connection by FIN again, as TCP does by default.
    static func closeGracefully(_ socket: Int32) {
        var option = linger(l_onoff: 0, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes a connection by a reset (SO_LINGER with a time of 0), so that neither side keeps a TIME_WAIT.
    static func closeByReset(_ socket: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
