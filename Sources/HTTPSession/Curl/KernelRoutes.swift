internal import CCurl
internal import EventLoop
internal import Glibc
internal import Reachability

/// Asks the kernel for its route to an address, in the network namespace of the calling thread. To connect a datagram socket sends nothing, and
/// assigns the local address that a connection would have (ip(7)). The result follows from that address and the kernel's routes and rules.
enum KernelRoutes {
    /// The maximum number of lookups for an expected address. If the kernel distributes connections over several routes by their ports, most results
    /// are other routes.
    private static let maximumLookups = 64

    /// The route to an address and port. `interface` is the interface to which connections are bound; `nil` for the kernel's choice.
    static func route(
        to address: UnsafePointer<sockaddr>, _ length: socklen_t, over interface: String? = nil
    ) -> RouteTracker.Route {
        let probe = socket(Int32(address.pointee.sa_family), Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return .unknown }
        defer { close(probe) }
        if let interface { setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, interface, socklen_t(interface.utf8.count)) }
        guard connect(probe, address, length) == 0 else {
            switch errno {
            // EADDRNOTAVAIL: there is no local address to send from.
            case ENETUNREACH, ENETDOWN, EADDRNOTAVAIL: return .none
            // The errors of the route types `unreachable`, `prohibit` and `blackhole` (ip-route(8)).
            case EHOSTUNREACH, EACCES, EINVAL: return .refused
            default: return .unknown
            }
        }
        return IdleSockets.address(of: probe).map { .from([$0]) } ?? .unknown
    }

    /// The route to an address.
    ///
    /// - Parameters:
    ///   - address: The remote address.
    ///   - interface: The interface to which connections are bound; `nil` for the kernel's choice.
    ///   - expected: The local addresses of present connections to it. The kernel is asked again until all of them are among the results.
    /// - Returns: The route with the local addresses of all results; unknown if an expected one is not among several.
    static func route(
        to address: IPAddress, over interface: String? = nil, expecting expected: Set<IPAddress> = []
    ) -> RouteTracker.Route {
        // The zone of the address is not known (RFC 4007), and a neighbor on the link has no route that could change.
        guard !(address.family == .v6 && address.isLinkLocal) else { return .unknown }
        var sources: Set<IPAddress> = []
        for _ in 0..<maximumLookups {
            switch SocketAddress(address, port: 0).withPointer({ route(to: $0, $1, over: interface) }) {
            case .from(let chosen): sources.formUnion(chosen)
            case let other: return sources.isEmpty ? other : .unknown
            }
            if sources.isSuperset(of: expected) { break }
        }
        // If there are several routes, there may be further ones.
        return sources.count > 1 && !sources.isSuperset(of: expected) ? .unknown : .from(sources)
    }

    /// The IP address in a socket address; `nil` for another family.
    static func address(_ address: UnsafePointer<sockaddr>) -> IPAddress? {
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET: return bytes(raw, at: MemoryLayout<sockaddr_in>.offset(of: \.sin_addr), count: 4)
        case AF_INET6: return bytes(raw, at: MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr), count: 16)
        default: return nil
        }
    }

    private static func bytes(_ address: UnsafeRawPointer, at offset: Int?, count: Int) -> IPAddress? {
        offset.flatMap { IPAddress(bytes: UnsafeRawBufferPointer(start: address + $0, count: count))?.unmapped }
    }
}
