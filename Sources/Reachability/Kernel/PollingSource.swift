internal import ByteComparison
internal import CLinux
internal import EventLoop
internal import Glibc

/// The kernel for a process to which netlink is refused completely, for example by systemd's `RestrictAddressFamilies=`. The
/// tables come from /proc and ioctl(2). A route is the choice of connect(2) on a datagram socket, which sends nothing. The source
/// delivers no events.
///
/// The answers are encoded as the kernel's messages. They lack tables other than main, rules, nexthop objects, lifetimes,
/// neighbors, and the lower devices of stacked devices.
final class PollingSource: KernelSource {
    private let socket: Int32
    private let tables: ProcTables
    private var pending: [UInt8] = []
    private var routes: [IPAddress.Family: [Route]] = [:]
    private var addresses: [Address] = []
    private var indexes: [ExactString: UInt32] = [:]

    /// Creates a source; `nil` if the error is not a refusal of netlink, or no other socket can be opened.
    init?(_ error: NetlinkError) {
        guard [EAFNOSUPPORT, EPROTONOSUPPORT, EPERM, EACCES, ENOSYS].contains(error.errno) else { return nil }
        socket = Self.datagramSocket(AF_INET)
        guard socket >= 0 else { return nil }
        tables = ProcTables(socket: socket)
    }

    deinit { close(socket) }

    var eventDescriptor: Int32? { nil }
    var dumpDescriptor: Int32? { nil }

    func readEvents(atMost limit: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> NetlinkSource.Drained { .read }

    // Always dumps the complete table: the additional routes change nothing.
    func startDump(_ table: KernelTable, over interface: UInt32?, sequence: UInt32) -> Int32 {
        var messages = SynthesizedMessages(sequence: sequence)
        switch table {
        case .links:
            for link in readLinks() { messages.add(link) }
        case .addresses:
            _ = readLinks()
            addresses = tables.addresses(indexes)
            for address in addresses { messages.add(address) }
        case .routesV4, .routesV6:
            let family: IPAddress.Family = table == .routesV4 ? .v4 : .v6
            for route in readRoutes(family) { messages.add(route) }
        case .rulesV4, .rulesV6, .nexthops: break
        }
        messages.addDone()
        pending = messages.bytes
        return 0
    }

    func readDump(_ body: (UnsafeRawBufferPointer) -> Void) -> Int32 {
        let messages = pending
        pending = []
        if !messages.isEmpty { messages.withUnsafeBytes(body) }
        return 0
    }

    func ask(_ queries: ArraySlice<RouteQuery>) -> [[UInt8]] { queries.map(answer) }

    private func answer(to query: RouteQuery) -> [UInt8] {
        var answer = SynthesizedMessages(sequence: 1, flags: 0)
        switch route(for: query) {
        case .success(let route): answer.add(route)
        case .failure(let refusal): answer.addError(errno: refusal.errno)
        }
        return answer.bytes
    }

    /// Returns an empty answer: the neighbor table cannot be read without netlink.
    func ask(_ key: Neighbor.Key) -> [UInt8] { [] }

    /// Returns `nil`: without netlink, verdicts do not depend on counters.
    func counters(of interface: UInt32) -> LinkCounters? { nil }

    // MARK: Tables

    private func readLinks() -> [Link] {
        let links = tables.links()
        indexes = Dictionary(links.map { (ExactString($0.name), $0.index) }, uniquingKeysWith: { first, _ in first })
        return links
    }

    private func readRoutes(_ family: IPAddress.Family) -> [Route] {
        let found = tables.routes(family, indexes)
        routes[family] = found
        return found
    }

    // MARK: Routes by connect(2)

    private static func datagramSocket(_ family: Int32) -> Int32 {
        Glibc.socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private func route(for query: RouteQuery) -> Result<Route, NetlinkError> {
        let family = query.destination.family
        let probe = Self.datagramSocket(family == .v4 ? AF_INET : AF_INET6)
        guard probe >= 0 else { return .failure(NetlinkError(call: "socket", errno: ENETUNREACH)) }
        defer { close(probe) }
        let matching = routesTo(query.destination).filter { query.interface == 0 || $0.uses(interface: query.interface) }
        if query.interface != 0 {
            // Without a route, IPv4 treats any destination as on the link of the interface to which a socket is bound.
            guard !matching.isEmpty, bind(probe, to: query.interface) else {
                return .failure(NetlinkError(call: "connect", errno: ENETUNREACH))
            }
        }
        if let selector = query.selector, !apply(selector, to: probe) {
            return .failure(NetlinkError(call: "bind", errno: errno))
        }
        // Any port is suitable, because nothing is sent.
        let name = SocketAddress(query.destination, port: query.port == 0 ? 9 : query.port)
        let failure = name.connect(probe) == 0 ? 0 : errno
        guard failure == 0, let source = SocketAddress(of: probe)?.address else {
            return .failure(NetlinkError(call: "connect", errno: failure == 0 ? ENETUNREACH : failure))
        }
        let key = Route.Key(destination: IPPrefix(query.destination, length: .max))
        if source == query.destination {
            let loopback = indexes["lo"] ?? 1
            return .success(Route(key, kind: .local, nextHops: [Route.NextHop(interface: loopback)], preferredSource: source))
        }
        // The source address identifies the interface, even if a rule leads to another table. The main table decides if several
        // interfaces have the address, or none has it, as on unnumbered links.
        let owners = Set(addresses.filter { $0.address == source }.map(\.key.interface))
        let listed = matching.first { $0.nextHops.first.map { owners.contains($0.interface) } ?? false }
        let hop: Route.NextHop?
        if let listed {
            hop = listed.nextHops.first
        } else if let owner = owners.min(), query.interface == 0 || owner == query.interface {
            hop = Route.NextHop(interface: owner)
        } else {
            hop = matching.first?.nextHops.first
        }
        guard let hop else { return .failure(NetlinkError(call: "connect", errno: ENETUNREACH)) }
        return .success(Route(key, nextHops: [hop], preferredSource: source))
    }

    /// Returns the main table's routes to an address, the best route first.
    private func routesTo(_ destination: IPAddress) -> [Route] {
        (routes[destination.family] ?? []).filter { $0.key.destination.contains(destination) && $0.kind == .unicast }
            .sorted { left, right in
                let (one, other) = (left.key, right.key)
                if one.destination.length != other.destination.length { return one.destination.length > other.destination.length }
                return one.metric < other.metric
            }
    }

    /// Gives a socket the source address and the mark. - Returns: false if the system refuses the address, which sets errno. A mark that this process may
    /// not set is the result of the probe.
    private func apply(_ selector: RouteSelector, to probe: Int32) -> Bool {
        var mark = selector.mark
        if mark != 0 { setsockopt(probe, SOL_SOCKET, SO_MARK, &mark, socklen_t(MemoryLayout<UInt32>.size)) }
        return selector.source.map { SocketAddress($0, port: 0).bind(probe) == 0 } ?? true
    }

    private func bind(_ probe: Int32, to interface: UInt32) -> Bool {
        guard let name = indexes.first(where: { $0.value == interface })?.key.wrappedValue else { return false }
        return setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.utf8.count)) == 0
    }
}
