import Console
import CLinux
import EventLoop
import Glibc
import Reachability

/// A listening socket, which ``WebServer`` takes over.
struct ListeningSocket: Sendable {
    /// The descriptor. The server closes it.
    let descriptor: Int32
    /// The address and the port; `nil` for a Unix socket.
    let endpoint: (address: IPAddress, port: UInt16)?
    /// The path of the file that this process made; `nil` for other sockets.
    let path: String?

    /// The maximum number of connections that wait until they are accepted.
    static let backlog: Int32 = 4_096
    private static let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)

    /// Opens a TCP socket.
    ///
    /// - Throws: ``Failure`` with code 71, or 77 if the port needs a right.
    static func tcp(_ listen: ListenAddress) throws(Failure) -> ListeningSocket {
        let isIPv6 = listen.address.family == .v6
        let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
        guard descriptor >= 0 else { throw Failure(systemCall: "socket", errno) }
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let address = SocketAddress(listen.address, port: listen.port)
        guard address.bind(descriptor) == 0, startListening(descriptor) else {
            let number = errno
            close(descriptor)
            throw failure("--listen \(listen)", number)
        }
        return ListeningSocket(descriptor: descriptor, endpoint: localEndpoint(descriptor), path: nil)
    }

    /// Opens a Unix socket whose file has these permissions and this group; `nil` for that of the process. A file that a former run left
    /// is replaced.
    ///
    /// - Throws: ``Failure`` with code 71 if another process listens there, if the path is that of something else, or if the file cannot
    ///   be made.
    static func unix(path: String, mode: UInt32, group: UInt32? = nil) throws(Failure) -> ListeningSocket {
        guard let address = SocketAddress(unixPath: path) else {
            throw Failure(ExitCode.system, "\(path): a socket's path has 1 to \(Configuration.longestSocketPath) bytes")
        }
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw Failure(systemCall: "socket", errno) }
        var result = address.bind(descriptor)
        if result != 0, errno == EADDRINUSE {
            guard isSocket(path) else {
                close(descriptor)
                throw Failure(ExitCode.system, "\(path): exists, and is not a socket; remove it")
            }
            // Only the socket of a process that has ended refuses connections.
            let probe = socket(AF_UNIX, type, 0)
            let isStale = probe >= 0 && address.connect(probe) != 0 && errno == ECONNREFUSED
            if probe >= 0 { close(probe) }
            errno = EADDRINUSE
            if isStale {
                unlink(path)
                result = address.bind(descriptor)
            }
        }
        // The permissions are set before listen(2), so no client connects with others.
        let isReady = result == 0 && (group.map { chown(path, .max, $0) == 0 } ?? true) && chmod(path, mode) == 0
        guard isReady, startListening(descriptor) else {
            let number = errno
            close(descriptor)
            if result == 0 { unlink(path) }
            throw failure(path, number)
        }
        return ListeningSocket(descriptor: descriptor, endpoint: nil, path: path)
    }

    /// Takes a listening socket that another program opened, such as the service manager (sd_listen_fds(3)).
    ///
    /// - Throws: ``Failure`` with code 71 if it is no listening stream socket, and with 78 if its address is not one of loopback.
    init(inherited descriptor: Int32) throws(Failure) {
        var (isListening, size): (Int32, socklen_t) = (0, socklen_t(MemoryLayout<Int32>.size))
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0 else {
            throw Failure(ExitCode.system, "descriptor \(descriptor): not a listening socket")
        }
        let endpoint = Self.localEndpoint(descriptor)
        if let endpoint, !endpoint.address.isLoopback {
            let address = ListenAddress.text(endpoint.address, port: endpoint.port)
            throw Failure(ExitCode.configuration, "the inherited socket \(address): \(ListenAddress.loopbackOnly)")
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        self.init(descriptor: descriptor, endpoint: endpoint, path: nil)
    }

    private init(descriptor: Int32, endpoint: (address: IPAddress, port: UInt16)?, path: String?) {
        (self.descriptor, self.endpoint, self.path) = (descriptor, endpoint, path)
    }

    /// Whether a path is that of a Unix socket, and not of a link to one.
    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    /// Removes the file of a Unix socket that this process made.
    func removeFile() {
        if let path { unlink(path) }
    }

    /// Sets the backlog again: NIO's `withBoundSocket` calls listen(2) with 128, whatever its options are. The kernel drops the SYNs of further
    /// clients, which repeat them after 1 s and after 3 s.
    func restoreBacklog() { _ = Self.startListening(descriptor) }

    private static func startListening(_ descriptor: Int32) -> Bool { listen(descriptor, backlog) == 0 }

    private static func failure(_ name: String, _ number: Int32) -> Failure {
        switch number {
        case EADDRINUSE: Failure(ExitCode.system, "\(name): another process listens there")
        case EACCES, EPERM: Failure(ExitCode.notPermitted, "\(name): \(errorText(number))")
        default: Failure(ExitCode.system, "\(name): \(errorText(number))")
        }
    }

    /// Returns the address and port of a TCP socket; `nil` for other sockets.
    private static func localEndpoint(_ descriptor: Int32) -> (address: IPAddress, port: UInt16)? {
        SocketAddress(of: descriptor).flatMap { name in name.address.map { ($0, name.port) } }
    }
}
