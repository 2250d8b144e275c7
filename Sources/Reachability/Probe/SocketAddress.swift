internal import CLinux
internal import Glibc

/// An address and a port for connect(2).
struct SocketAddress {
    private let address: IPAddress
    private let port: UInt16
    private let zone: UInt32

    /// Creates an address. `zone` is the index of the interface of a link-local IPv6 address; otherwise 0.
    init(_ address: IPAddress, port: UInt16, zone: UInt32 = 0) {
        self.address = address
        self.port = port
        self.zone = zone
    }

    /// Connects a socket. Returns the result of connect(2), and sets errno.
    func connect(_ socket: Int32) -> Int32 {
        switch address.family {
        case .v4:
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &name.sin_addr) { $0.copyBytes(from: address.bytes) }
            return connect(socket, name)
        case .v6:
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            name.sin6_scope_id = zone
            withUnsafeMutableBytes(of: &name.sin6_addr) { $0.copyBytes(from: address.bytes) }
            return connect(socket, name)
        }
    }

    /// Whether a connected socket is its own peer. The kernel may choose the port of the destination as that of the socket, and if nothing listens there,
    /// TCP connects the socket to itself (RFC 9293 section 3.5, simultaneous open). Only ports of this machine in the range
    /// `net.ipv4.ip_local_port_range` (ip(7)) are affected.
    static func isConnectedToItself(_ socket: Int32) -> Bool {
        guard let local = name(getsockname, socket), let remote = name(getpeername, socket) else { return false }
        // Family, port and address are at the same offsets in both families (ipv6(7)); the flow label is not a part of the identity.
        guard local.sin6_port == remote.sin6_port, local.sin6_family == remote.sin6_family else { return false }
        if local.sin6_family == sa_family_t(AF_INET) { return local.sin6_flowinfo == remote.sin6_flowinfo }
        return withUnsafeBytes(of: local.sin6_addr) { local in
            withUnsafeBytes(of: remote.sin6_addr) { remote in local.elementsEqual(remote) }
        }
    }

    /// The name of a socket of either family. In that of IPv4, the address is at the place of `sin6_flowinfo`.
    private static func name(
        _ call: (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32, _ socket: Int32
    ) -> sockaddr_in6? {
        var name = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(socket, $0, &length) }
        }
        return result == 0 ? name : nil
    }

    private func connect<Name>(_ socket: Int32, _ name: Name) -> Int32 {
        withUnsafeBytes(of: name) { bytes in
            guard let start = bytes.baseAddress else { return -1 }
            return Glibc.connect(socket, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }
}
