internal import CCurl
internal import Glibc
internal import Reachability

/// Asks the kernel for its way to an address, from the network namespace of the calling thread. The answer follows from its routes and
/// rules: a datagram socket that is connected sends nothing, and gets the address that a connection would have (ip(7)).
enum KernelRoutes {
    /// How often it is asked for an answer that is expected: where it spreads connections over several ways by their ports, most answers are
    /// of other ways.
    private static let questions = 64

    /// The way to an address, and to its port. `interface`: the one that everything goes over; `nil`: the one that the routes say.
    static func way(to address: UnsafePointer<sockaddr>, _ length: socklen_t, over interface: String? = nil) -> RouteTracker.Route
    {
        let probe = socket(Int32(address.pointee.sa_family), Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return .unknown }
        defer { close(probe) }
        if let interface { setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, interface, socklen_t(interface.utf8.count)) }
        guard connect(probe, address, length) == 0 else {
            switch errno {
            // The last: there is no address to send from.
            case ENETUNREACH, ENETDOWN, EADDRNOTAVAIL: return .none
            // As the types of routes are told: `unreachable`, `prohibit`, `blackhole` (ip-route(8)).
            case EHOSTUNREACH, EACCES, EINVAL: return .refused
            default: return .unknown
            }
        }
        return IdleSockets.address(of: probe).map { .from([$0]) } ?? .unknown
    }

    /// The way to an address. `interface`: the one that everything goes over. `expected`: the addresses of connections to it; the kernel is
    /// asked again while one of them is not among the answers.
    static func way(
        to address: IPAddress, over interface: String? = nil, expecting expected: Set<IPAddress> = []
    ) -> RouteTracker.Route {
        // What the zone would be is not known any more (RFC 4007); a neighbor has no route that could change.
        guard !(address.family == .v6 && address.isLinkLocal) else { return .unknown }
        var sources: Set<IPAddress> = []
        for _ in 0..<questions {
            switch withSocketAddress(address, { way(to: $0, $1, over: interface) }) {
            case .from(let chosen): sources.formUnion(chosen)
            case let other: return sources.isEmpty ? other : .unknown
            }
            if sources.isSuperset(of: expected) { break }
        }
        // Of several ways there may be one more.
        return sources.count > 1 && !sources.isSuperset(of: expected) ? .unknown : .from(sources)
    }

    /// The address that libcurl is about to connect to; `nil`: none of IP.
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

    private static func withSocketAddress<Result>(
        _ address: IPAddress, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var storage = sockaddr_in6()
        let bytes = address.bytes
        let isIPv4 = address.family == .v4
        withUnsafeMutableBytes(of: &storage) { storage in
            storage.storeBytes(of: sa_family_t(isIPv4 ? AF_INET : AF_INET6), as: sa_family_t.self)
            let offset =
                isIPv4 ? MemoryLayout<sockaddr_in>.offset(of: \.sin_addr) : MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
            if let offset { UnsafeMutableRawBufferPointer(rebasing: storage[offset...]).copyBytes(from: bytes) }
        }
        let length = socklen_t(isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
        return withUnsafePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
