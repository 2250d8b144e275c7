import Glibc

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

/// A socket address in the form that system calls take.
struct SocketAddress {
    private var storage = sockaddr_storage()
    private var length: socklen_t

    init(_ address: ListeningAddress) throws {
        switch address {
        case .ip(let text, let port): try self.init(text, port: port)
        case .unix(let path): try self.init(path: path)
        }
    }

    private init(path: String) throws {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = withUnsafeMutableBytes(of: &name.sun_path) { field in
            guard bytes.count < field.count, !bytes.isEmpty else { return false }
            field.copyBytes(from: bytes)
            return true
        }
        guard fits else { throw TestServerError("\(path): 1 to 107 bytes are a Unix socket's path") }
        length = socklen_t(MemoryLayout<sockaddr_un>.size)
        withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: name, as: sockaddr_un.self) }
    }

    /// An address of numeric text; names are not resolved.
    init(_ text: String, port: UInt16) throws {
        var v4 = sockaddr_in()
        var v6 = sockaddr_in6()
        if inet_pton(AF_INET, text, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v4, as: sockaddr_in.self) }
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
        } else if inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 {
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_port = port.bigEndian
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: v6, as: sockaddr_in6.self) }
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        } else {
            throw TestServerError("\(text): no numeric address")
        }
    }

    /// The local address of a socket.
    init(of descriptor: Int32) throws {
        length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var length = length
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard code == 0 else { throw TestServerError("getsockname", errno: errno) }
        self.length = length
    }

    /// Whether the text is a numeric address.
    static func isNumeric(_ text: String) -> Bool {
        (try? SocketAddress(text, port: 0)) != nil
    }

    var family: Int32 { Int32(storage.ss_family) }

    /// The port; 0 for a Unix domain socket.
    var port: UInt16 {
        guard family != AF_UNIX else { return 0 }
        // Both families have the port at the same offset.
        return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}

/// A descriptor that is closed with its last reference.
final class Descriptor: Sendable {
    let number: Int32

    /// Takes over `number`, the result of `call`; a negative one throws errno.
    init(_ number: Int32, _ call: String) throws {
        guard number >= 0 else { throw TestServerError(call, errno: errno) }
        self.number = number
    }

    deinit { close(number) }

    /// A socket that neither blocks nor is inherited.
    static func socket(_ family: Int32, _ type: __socket_type) throws -> Descriptor {
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
        guard name.withPointer({ bind(socket.number, $0, $1) }) == 0 else { throw TestServerError("bind", errno: errno) }
        guard listen(socket.number, 1024) == 0 else { throw TestServerError("listen", errno: errno) }
        return socket
    }

    private func set(_ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(number, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
