import CLinux
import Glibc

/// The listening sockets that the service manager opened for this program (sd_listen_fds(3)).
struct InheritedSockets: Hashable, Sendable {
    /// The descriptors of TCP sockets.
    var internet: [Int32] = []
    /// The descriptors of Unix sockets.
    var local: [Int32] = []
    /// The descriptors that are no listening stream sockets.
    var unusable: [Int32] = []

    /// The first inherited descriptor (SD_LISTEN_FDS_START).
    static let first: Int32 = 3
    /// The maximum number of sockets that are used.
    static let limit = 64

    /// Reads `LISTEN_PID` and `LISTEN_FDS`. The sockets of another process are left alone.
    ///
    /// Programs that this one starts do not inherit the descriptors.
    init(_ environment: [String: String], processID: Int32 = getpid(), first: Int32 = Self.first) {
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == processID,
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0
        else { return }
        for descriptor in first..<first + min(count, Int32(Self.limit)) {
            guard fcntl(descriptor, F_GETFD) >= 0 else { continue }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            switch (Self.isListening(descriptor), Self.option(SO_DOMAIN, of: descriptor)) {
            case (true, AF_INET), (true, AF_INET6): internet.append(descriptor)
            case (true, AF_UNIX): local.append(descriptor)
            default: unusable.append(descriptor)
            }
        }
    }

    private static func isListening(_ descriptor: Int32) -> Bool {
        option(SO_ACCEPTCONN, of: descriptor) == 1 && option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
    }

    /// Returns the value of a socket option; `nil` for a descriptor that is no socket.
    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }
}
