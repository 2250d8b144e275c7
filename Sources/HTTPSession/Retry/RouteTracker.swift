internal import Reachability

/// Follows the kernel's routes to the addresses that transfers use, of servers or proxies, and judges the transfers' ``Health`` by them.
///
/// TCP waits for minutes before it gives up a connection whose local address was removed. An outage shorter than ``toleratedOutage`` is left
/// to TCP.
package struct RouteTracker: Sendable {
    /// The longest outage that is left to TCP, in nanoseconds.
    static let toleratedOutage: Int64 = 250_000_000

    /// The kernel's route to an address.
    enum Route: Hashable, Sendable {
        /// A route exists. A new connection would have one of these local addresses; the kernel spreads connections over several routes if
        /// there are several addresses.
        case from(Set<IPAddress>)
        /// The kernel has no route.
        case none
        /// The route refuses traffic (`unreachable`, `prohibit`, `blackhole`); it does not change while a task waits.
        case refused
        /// The kernel was not asked, or its answer contains no route.
        case unknown
    }

    /// The two addresses of a connection.
    struct Connection: Hashable, Sendable {
        var local: IPAddress
        var remote: IPAddress
        /// The local address that the kernel chose when the connection was made. It differs from `local` if policy rules match more than
        /// addresses.
        var chosen: IPAddress?
    }

    /// A connection that is being made: the remote address, and the local address that the kernel chose for it.
    package struct ConnectAttempt: Hashable, Sendable {
        var remote: IPAddress
        var chosen: IPAddress?
    }

    /// An attempt without a connection, and its start in nanoseconds. Without ``connectAttempts`` it still resolves its host's name.
    struct Attempt: Hashable, Sendable {
        var since: Int64
        var connectAttempts: [ConnectAttempt] = []
    }

    /// The state of a connection or attempt, as the routes show it.
    enum Health: Hashable, Sendable {
        case healthy
        /// No packet reaches the remote address. The state becomes ``suspect(_:)`` at the given time unless a route returns.
        case unreachable(until: Int64)
        /// The connection may still work, but a repeatable request is better sent over another route, for this reason.
        case suspect(String)
        /// The connection carries no more data, for this reason.
        case dead(String)
    }

    private struct Takeover: Hashable, Sendable {
        var interface: UInt32
        var moment: Int64
    }

    /// Whether the user's configuration binds all sockets to one interface, whatever the routes say.
    private let isBound: Bool
    private var path: NetworkPath?
    /// The interfaces without a usable link, by index, and the time at which each lost it.
    private var downSince: [UInt32: Int64] = [:]
    private var routes: [IPAddress: Route] = [:]
    /// The addresses in use without a route, and the time at which the kernel first reported it.
    private var unreachableSince: [IPAddress: Int64] = [:]

    // Default routes: an attempt depends on them until its server's address is resolved.
    /// The address families that have lost their default route, each with its interface and time. A family that never had one is not listed.
    private var lostDefaultRoutes: [IPAddress.Family: Takeover] = [:]
    private var selectedInterfaces: [IPAddress.Family: UInt32] = [:]
    private var takeovers: [IPAddress.Family: Takeover] = [:]
    /// Whether the machine has lost its default routes, or lacks them only because a link is missing. `false` if it never had a default route.
    private(set) var hasLostAllRoutes = false

    init(isBound: Bool = false) { self.isBound = isBound }

    /// Takes a new path. - Returns: whether the change may have broken connections.
    ///
    /// Interfaces that are not notable (those of containers come and go) do not count: their connections are checked before each reuse.
    mutating func update(_ path: NetworkPath, now: Int64) -> Bool {
        defer {
            self.path = path
            hasLostAllRoutes =
                !isBound && path.status == .unsatisfied && (!defaultRouteLosses.isEmpty || path.cause?.layer == .link)
        }
        let down = path.interfaces.filter { $0.level < .degraded }.map(\.index)
        downSince = Dictionary(uniqueKeysWithValues: down.map { ($0, downSince[$0] ?? now) })
        for family in [IPAddress.Family.v4, .v6] {
            guard let present = RouteTracker.interface(of: path, family)?.index else {
                if lostDefaultRoutes[family] == nil, let before = selectedInterfaces[family] {
                    lostDefaultRoutes[family] = Takeover(interface: before, moment: now)
                }
                continue
            }
            lostDefaultRoutes[family] = nil
            if let before = selectedInterfaces[family], before != present {
                takeovers[family] = Takeover(interface: before, moment: now)
            }
            selectedInterfaces[family] = present
        }
        guard let before = self.path else { return false }
        let hasLostAddress = RouteTracker.addresses(of: before).contains { interface(having: $0, on: path) == nil }
        return before.status != path.status || hasLostAddress
            || before.interfaceV4?.index != path.interfaceV4?.index || before.interfaceV6?.index != path.interfaceV6?.index
    }

    /// Replaces the routes by those of all addresses in use. Routes of other addresses are forgotten.
    mutating func updateRoutes(_ routes: [IPAddress: Route], now: Int64) {
        self.routes = routes
        let unreachable = routes.filter { $0.value == .none || $0.value == .refused }.keys
        unreachableSince = Dictionary(uniqueKeysWithValues: unreachable.map { ($0, unreachableSince[$0] ?? now) })
    }

    // MARK: Connections

    func health(of connection: Connection, now: Int64) -> Health {
        health(of: connection, by: routes[connection.remote] ?? .unknown, now: now)
    }

    /// The health of a connection whose remote address has the given route.
    func health(of connection: Connection, by route: Route, now: Int64) -> Health {
        let (local, remote) = (connection.local, connection.remote)
        guard path != nil, !local.isLoopback, !isLocal(remote) else { return .healthy }
        guard let interface = interface(having: local) else {
            // The kernel would use the address, so it exists, even if the path does not list it yet.
            if case .from(let sources) = route, sources.contains(local) { return .healthy }
            return .dead("the address \(local) is gone")
        }
        if let since = downSince[interface.index] {
            return unreachable(since, now, "\(interface.name) is \(interface.level.rawValue)")
        }
        guard !isBound else { return .healthy }
        switch route {
        case .unknown: return .healthy
        case .none, .refused: return unreachable(unreachableSince[remote] ?? now, now, "there is no route to \(remote)")
        case .from(let sources):
            // The local address may belong to another interface than the sending one (`ip route … src`).
            guard !sources.contains(local), !sharesInterface(sources, with: [local, connection.chosen]) else { return .healthy }
            return .suspect("another interface has taken over from \(interface.name)")
        }
    }

    /// Whether one of `sources` is on the same interface as one of `others`, or on an interface that is not known yet. The kernel may prefer
    /// another address of the same interface every day (RFC 8981).
    private func sharesInterface(_ sources: Set<IPAddress>, with others: [IPAddress?]) -> Bool {
        let indexes = others.compactMap { $0.flatMap(interface(having:))?.index }
        return sources.contains { interface(having: $0).map { indexes.contains($0.index) } ?? true }
    }

    // MARK: Attempts

    /// The health of an attempt that has no connection yet: the best health among its connect attempts.
    ///
    /// It is ``Health/dead(_:)`` if no route has existed since the attempt began. TCP waits for an interface without a carrier as for a slow
    /// server.
    func health(of attempt: Attempt, now: Int64) -> Health {
        guard !isBound, path != nil else { return .healthy }
        guard !attempt.connectAttempts.isEmpty else { return health(ofLookupSince: attempt.since, now: now) }
        let states = attempt.connectAttempts.map { health(of: $0, since: attempt.since, now: now) }
        if states.contains(.healthy) { return .healthy }
        let waits = states.compactMap { health in if case .unreachable(let until) = health { until } else { nil } }
        if let until = waits.max() { return .unreachable(until: until) }
        let isSuspect = { (health: Health) in if case .suspect = health { true } else { false } }
        return states.first(where: isSuspect) ?? states.first ?? .healthy
    }

    private func health(of attempt: ConnectAttempt, since start: Int64, now: Int64) -> Health {
        guard !isLocal(attempt.remote) else { return .healthy }
        let missing = "there is no route to \(attempt.remote)"
        switch routes[attempt.remote] ?? .unknown {
        case .unknown: return .healthy
        case .none, .refused: return unreachable(unreachableSince[attempt.remote] ?? now, start, now, missing)
        case .from(let sources):
            guard let chosen = attempt.chosen else { return .healthy }
            guard let interface = interface(having: chosen) else {
                return sources.contains(chosen) ? .healthy : .suspect("the address \(chosen) is gone")
            }
            guard sources.contains(chosen) || sharesInterface(sources, with: [chosen]) else {
                return .suspect("another interface has taken over from \(interface.name)")
            }
            return downSince[interface.index].map { unreachable($0, start, now, missing) } ?? .healthy
        }
    }

    /// The health of an attempt that has resolved its host's name since `start`: whether the default routes have changed since then.
    private func health(ofLookupSince start: Int64, now: Int64) -> Health {
        if takeovers.values.contains(where: { $0.moment > start }) { return .suspect("another interface has taken over") }
        let missing = "there is no route to any network"
        if let loss = defaultRouteLosses.filter({ $0 > start }).min() { return unreachable(loss, start, now, missing) }
        return hasLostAllRoutes ? unreachable(start, start, now, missing) : .healthy
    }

    /// Whether no packet reaches an address that has the given route.
    func isUnreachable(_ route: Route, to remote: IPAddress) -> Bool {
        route == .unknown
            ? hasLostAllRoutes : recoverableCause(route, to: remote) != nil || (route == .refused && !isBound && !isLocal(remote))
    }

    /// The missing link or route between this machine and an address, if it may return.
    func recoverableCause(_ route: Route, to remote: IPAddress) -> Cause? {
        guard !isBound, path != nil, !isLocal(remote) else { return nil }
        switch route {
        case .unknown, .refused: return nil
        case .none: return Cause(.route, .noRoute, detail: "there is no route to \(remote)")
        case .from(let sources):
            let interfaces = sources.compactMap(interface(having:))
            guard interfaces.count == sources.count, interfaces.allSatisfy({ downSince[$0.index] != nil }),
                let one = interfaces.first
            else { return nil }
            let code: Cause.Code = one.level == .off ? .interfaceDown : one.level == .dormant ? .dormant : .noCarrier
            return Cause(.link, code, detail: "\(one.name), which leads to \(remote), is \(one.level.rawValue)")
        }
    }

    /// The times at which default routes were lost that have not returned.
    private var defaultRouteLosses: [Int64] {
        lostDefaultRoutes.values.map(\.moment) + selectedInterfaces.values.compactMap { downSince[$0] }
    }

    private func unreachable(_ since: Int64, _ now: Int64, _ reason: String) -> Health {
        let until = since + RouteTracker.toleratedOutage
        return until <= now ? .suspect(reason) : .unreachable(until: until)
    }

    /// The health of an attempt that began at `start`: one that began during the outage gets the tolerated outage from its own start.
    private func unreachable(_ since: Int64, _ start: Int64, _ now: Int64, _ reason: String) -> Health {
        guard since <= start else { return unreachable(since, now, reason) }
        let until = start + RouteTracker.toleratedOutage
        return until <= now ? .dead(reason) : .unreachable(until: until)
    }

    // MARK: Addresses

    /// The host of an address in sentences.
    func text(_ address: IPAddress) -> String { isLocal(address) ? "this machine (\(address))" : "\(address)" }

    /// Whether the address belongs to this machine, and needs no route.
    private func isLocal(_ address: IPAddress) -> Bool { address.isLoopback || interface(having: address) != nil }

    private func interface(having address: IPAddress) -> NetworkInterface? { path.flatMap { interface(having: address, on: $0) } }

    private func interface(having address: IPAddress, on path: NetworkPath) -> NetworkInterface? {
        path.interfaces.first { $0.addresses.contains { $0.address == address } }
    }

    private static func addresses(of path: NetworkPath) -> Set<IPAddress> {
        Set(path.interfaces.filter { path.notable.contains($0.index) }.flatMap { $0.addresses.map(\.address) })
    }

    private static func interface(of path: NetworkPath, _ family: IPAddress.Family) -> NetworkInterface? {
        family == .v4 ? path.interfaceV4 : path.interfaceV6
    }
}
