internal import CLinux
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
