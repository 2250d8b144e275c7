/// Everything the kernel says of one network namespace's links, addresses, routes and rules, as a value.
///
/// It changes only by ``SnapshotChange``: applying the published changes to an earlier snapshot gives the later one.
public struct NetworkSnapshot: Hashable, Sendable {
    /// The devices by index.
    public private(set) var links: [UInt32: Link] = [:]
    /// The addresses by interface, address and prefix.
    public private(set) var addresses: [Address.Key: Address] = [:]
    /// The routes by key; several where they share it.
    public private(set) var routes: [Route.Key: RouteBucket] = [:]
    /// The policy rules.
    public private(set) var rules: Set<Rule> = []
    /// The nexthop objects by number.
    public private(set) var nexthops: [UInt32: NexthopObject] = [:]
    /// Keys of routes to everywhere, so that a full Internet table need not be searched for them.
    public private(set) var defaultRoutes: Set<Route.Key> = []

    /// The routes that share a key: one, nearly always.
    public enum RouteBucket: Hashable, Sendable {
        /// The only one.
        case one(Route)
        /// Several, in no order.
        case several(Set<Route>)

        /// Them all, for walking through: a set of one costs an allocation and a hash.
        var list: [Route] {
            switch self {
            case .one(let route): [route]
            case .several(let routes): Array(routes)
            }
        }

        /// Them all.
        public var all: Set<Route> {
            switch self {
            case .one(let route): [route]
            case .several(let routes): routes
            }
        }
    }

    /// An empty snapshot.
    public init() {}

    /// The addresses of one interface, in order.
    public func addresses(of interface: UInt32) -> [Address] {
        addresses.values.filter { $0.key.interface == interface }.sorted { $0.key < $1.key }
    }

    /// All routes, in no order.
    public var allRoutes: some Sequence<Route> { routes.values.lazy.flatMap(\.list) }

    /// The routes that share `key`.
    public func routes(_ key: Route.Key) -> Set<Route> { routes[key]?.all ?? [] }

    /// Whether this very route is there.
    public func contains(_ route: Route) -> Bool {
        switch routes[route.key] {
        case .one(let only): only == route
        case .several(let routes): routes.contains(route)
        case nil: false
        }
    }

    /// Applies one change.
    public mutating func apply(_ change: SnapshotChange) {
        switch change {
        case .link(let link): links[link.index] = link
        case .linkRemoved(let index): links[index] = nil
        case .address(let address): addresses[address.key] = address
        case .addressRemoved(let key): addresses[key] = nil
        case .routeAdded(let route): add(route)
        case .routeRemoved(let route): remove(route)
        case .ruleAdded(let rule): rules.insert(rule)
        case .ruleRemoved(let rule): rules.remove(rule)
        case .nexthop(let object): nexthops[object.id] = object
        case .nexthopRemoved(let id): nexthops[id] = nil
        }
    }

    /// Applies changes in order.
    public mutating func apply(_ changes: some Sequence<SnapshotChange>) {
        for change in changes { apply(change) }
    }

    private mutating func add(_ route: Route) {
        if route.key.destination.isDefault { defaultRoutes.insert(route.key) }
        // The key is hashed once where nothing else has it.
        switch routes.updateValue(.one(route), forKey: route.key) {
        case nil: break
        case .one(let other): if other != route { routes[route.key] = .several([other, route]) }
        case .several(var all):
            all.insert(route)
            routes[route.key] = .several(all)
        }
    }

    private mutating func remove(_ route: Route) {
        guard let place = routes.index(forKey: route.key) else { return }
        switch routes.values[place] {
        case .one(let other):
            guard other == route else { return }
            routes.remove(at: place)
            if route.key.destination.isDefault { defaultRoutes.remove(route.key) }
        case .several(var routes):
            routes.remove(route)
            self.routes[route.key] = routes.count == 1 ? routes.first.map { .one($0) } : .several(routes)
        }
    }
}

/// One difference between two snapshots.
public enum SnapshotChange: Hashable, Sendable {
    /// A device came or is changed.
    case link(Link)
    /// A device went, or moved to another namespace.
    case linkRemoved(UInt32)
    /// An address came or is changed.
    case address(Address)
    /// An address went.
    case addressRemoved(Address.Key)
    /// A route came; a changed route is removed and added.
    case routeAdded(Route)
    /// A route went.
    case routeRemoved(Route)
    /// A rule came.
    case ruleAdded(Rule)
    /// A rule went.
    case ruleRemoved(Rule)
    /// A nexthop object came or is changed.
    case nexthop(NexthopObject)
    /// A nexthop object went.
    case nexthopRemoved(UInt32)
}

extension NetworkSnapshot {
    /// The changes that lead from `old` to this snapshot.
    public func changes(since old: NetworkSnapshot) -> [SnapshotChange] {
        KernelTable.allCases.flatMap { changes(since: old, in: $0) }
    }

    /// The changes of one table.
    func changes(since old: NetworkSnapshot, in table: KernelTable) -> [SnapshotChange] {
        switch table {
        case .links:
            old.links.keys.filter { links[$0] == nil }.sorted().map { .linkRemoved($0) }
                + links.values.filter { old.links[$0.index] != $0 }.sorted { $0.index < $1.index }.map { .link($0) }
        case .addresses:
            old.addresses.keys.filter { addresses[$0] == nil }.sorted().map { .addressRemoved($0) }
                + addresses.values.filter { old.addresses[$0.key] != $0 }.sorted { $0.key < $1.key }.map { .address($0) }
        case .nexthops:
            old.nexthops.keys.filter { nexthops[$0] == nil }.sorted().map { .nexthopRemoved($0) }
                + nexthops.values.filter { old.nexthops[$0.id] != $0 }.sorted { $0.id < $1.id }.map { .nexthop($0) }
        case .routesV4: routeChanges(since: old, .v4)
        case .routesV6: routeChanges(since: old, .v6)
        case .rulesV4: ruleChanges(since: old, .v4)
        case .rulesV6: ruleChanges(since: old, .v6)
        }
    }

    private func routeChanges(since old: NetworkSnapshot, _ family: IPAddress.Family) -> [SnapshotChange] {
        var changes: [SnapshotChange] = []
        for (key, bucket) in old.routes where key.family == family && routes[key] != bucket {
            for route in bucket.all.subtracting(routes(key)) { changes.append(.routeRemoved(route)) }
        }
        for (key, bucket) in routes where key.family == family && old.routes[key] != bucket {
            for route in bucket.all.subtracting(old.routes(key)) { changes.append(.routeAdded(route)) }
        }
        return changes
    }

    private func ruleChanges(since old: NetworkSnapshot, _ family: IPAddress.Family) -> [SnapshotChange] {
        old.rules.filter { $0.family == family && !rules.contains($0) }.map { .ruleRemoved($0) }
            + rules.filter { $0.family == family && !old.rules.contains($0) }.map { .ruleAdded($0) }
    }
}
