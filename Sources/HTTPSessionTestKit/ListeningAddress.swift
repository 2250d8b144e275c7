package import EventLoop
package import Glibc
import Reachability

/// The address that a server listens at.
@nonexhaustive public enum ListeningAddress: Hashable, Sendable {
    /// A numeric IPv4 or IPv6 address of this machine; port 0 lets the kernel choose. Addresses other than loopback are for servers inside a
    /// network namespace of the test.
    case ip(String, port: UInt16)
    /// A Unix domain socket at this path, which must not exist yet. The server removes it when it stops.
    case unix(String)

    /// A free port of 127.0.0.1.
    public static let loopback = ListeningAddress.ip("127.0.0.1", port: 0)
    /// A free port of ::1.
    public static let loopbackIPv6 = ListeningAddress.ip("::1", port: 0)
}

extension SocketAddress {
    /// - Throws: ``TestServerError`` for an address that no socket can have; names are not resolved.
    package init(_ address: ListeningAddress) throws {
        switch address {
        case .ip(let text, let port):
            guard let ip = IPAddress(text) else { throw TestServerError("\(text): no numeric address") }
            self.init(ip, port: port)
        case .unix(let path):
            guard let name = SocketAddress(unixPath: path) else {
                throw TestServerError("\(path): 1 to \(SocketAddress.longestPath) bytes are a Unix socket's path")
            }
            self = name
        }
    }
}

/// A descriptor that is closed with its last reference.
package final class Descriptor: Sendable {
    package let number: Int32

    /// Takes over `number`, the result of `call`; a negative one throws errno.
    package init(_ number: Int32, _ call: String) throws {
        guard number >= 0 else { throw TestServerError(call, errno: errno) }
        self.number = number
    }

    deinit { close(number) }

    /// A socket that neither blocks nor is inherited.
    package static func socket(_ family: Int32, _ type: __socket_type) throws -> Descriptor {
        try Descriptor(
            Glibc.socket(family, Int32(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0), "socket")
    }

    /// A stream socket that listens.
    static func listening(at address: ListeningAddress, receiveBuffer: Int?) throws -> Descriptor {
        let name = try SocketAddress(address)
        let socket = try Descriptor.socket(name.family, SOCK_STREAM)
        if name.family != AF_UNIX { socket.set(SO_REUSEADDR, 1) }
        // Accepted sockets inherit it, and with it the window that they offer.
        if let receiveBuffer { socket.set(SO_RCVBUF, Int32(clamping: receiveBuffer)) }
        guard name.bind(socket.number) == 0 else { throw TestServerError("bind", errno: errno) }
        guard listen(socket.number, 1024) == 0 else { throw TestServerError("listen", errno: errno) }
        return socket
    }

    private func set(_ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(number, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
