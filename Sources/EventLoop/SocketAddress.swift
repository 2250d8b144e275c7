package import Glibc

/// The address of an IP or Unix socket, as system calls take it and return it.
package struct SocketAddress: Sendable {
    private var storage = sockaddr_storage()
    private var length: socklen_t

    /// Creates an IP address and a port; `nil` unless there are 4 or 16 bytes. `zone` is the index of the interface of a link-local IPv6 address;
    /// otherwise 0.
    package init?(ip bytes: some Collection<UInt8>, port: UInt16, zone: UInt32 = 0) {
        switch bytes.count {
        case 4:
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &name.sin_addr) { $0.copyBytes(from: bytes) }
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: name, as: sockaddr_in.self) }
        case 16:
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            name.sin6_scope_id = zone
            withUnsafeMutableBytes(of: &name.sin6_addr) { $0.copyBytes(from: bytes) }
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: name, as: sockaddr_in6.self) }
        default: return nil
        }
    }

    /// The most bytes of a Unix socket's path.
    package static let longestPath = 107

    /// Creates the address of a Unix socket (unix(7)); `nil` unless its path has 1 to ``longestPath`` bytes, none of which is 0. After `@`, the name of
    /// an abstract socket follows if `allowsAbstract` is true.
    package init?(unixPath path: String, allowsAbstract: Bool = false) {
        var bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count <= Self.longestPath, !bytes.contains(0) else { return nil }
        let isAbstract = allowsAbstract && bytes[0] == UInt8(ascii: "@")
        if isAbstract { bytes[0] = 0 }
        let offset = MemoryLayout<sa_family_t>.size
        storage.ss_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &storage) { UnsafeMutableRawBufferPointer(rebasing: $0[offset...]).copyBytes(from: bytes) }
        // The length ends an abstract name, and a zero byte a path.
        length = socklen_t(offset + bytes.count + (isAbstract ? 0 : 1))
    }

    /// Returns the local address of a socket; `nil` if getsockname(2) fails, which sets errno.
    package init?(of socket: Int32) { self.init(socket, getsockname) }

    /// Returns the remote address of a connected socket; `nil` if getpeername(2) fails, which sets errno.
    package init?(ofPeerOf socket: Int32) { self.init(socket, getpeername) }

    private init?(
        _ socket: Int32, _ call: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32
    ) {
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(socket, $0, &length) }
        }
        guard result == 0 else { return nil }
        self.length = length
    }

    /// `AF_INET`, `AF_INET6` or `AF_UNIX`.
    package var family: Int32 { Int32(storage.ss_family) }

    /// The port; 0 for a Unix socket.
    package var port: UInt16 {
        guard family == AF_INET || family == AF_INET6 else { return 0 }
        // Both families have the port at the same offset.
        return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }

    /// Calls `body` with the bytes of the IP address, 4 or 16; with none for a Unix socket.
    package func withIP<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: storage) { bytes in
            let range =
                switch family {
                case AF_INET: 4..<8
                case AF_INET6: 8..<24
                default: 0..<0
                }
            return body(UnsafeRawBufferPointer(rebasing: bytes[range]))
        }
    }

    /// Calls `body` with the arguments of system calls.
    package func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// Connects a socket. - Returns: the result of connect(2), which sets errno.
    package func connect(_ socket: Int32) -> Int32 { withPointer { Glibc.connect(socket, $0, $1) } }

    /// Gives a socket this address. - Returns: the result of bind(2), which sets errno.
    package func bind(_ socket: Int32) -> Int32 { withPointer { Glibc.bind(socket, $0, $1) } }

    /// Whether a connected socket is its own peer. The kernel may choose the port of the destination as that of the socket, and if nothing listens there,
    /// TCP connects the socket to itself (RFC 9293 section 3.5, simultaneous open). Only ports of this machine in the range
    /// `net.ipv4.ip_local_port_range` (ip(7)) are affected.
    package static func isConnectedToItself(_ socket: Int32) -> Bool {
        guard let local = SocketAddress(of: socket), let remote = SocketAddress(ofPeerOf: socket),
            local.port == remote.port, local.family == remote.family
        else { return false }
        return local.withIP { local in remote.withIP { remote in local.elementsEqual(remote) } }
    }
}
