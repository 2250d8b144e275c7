extension Kernel {
    /// The links, addresses, routes and rules of one network namespace, as the kernel reports them.
    ///
    /// A snapshot changes only by ``Kernel/Change``: applying the published changes to an earlier snapshot gives the later one.
    public struct Snapshot: Hashable, Sendable {
        /// The devices, by index.
        public private(set) var links: [UInt32: Link] = [:]
        /// The addresses, by interface, address, prefix and peer.
        public private(set) var addresses: [Address.Key: Address] = [:]
        /// The routes, by key.
        package private(set) var routes = RouteTable()
        /// The policy rules.
        public private(set) var rules: Set<Rule> = []
        /// The nexthop objects, by number.
        public private(set) var nexthops: [UInt32: NexthopObject] = [:]
        /// The keys of default routes. They are stored so that a full Internet table need not be searched for them.
        package private(set) var defaultRoutes: Set<Route.Key> = []
        private(set) var index = RouteIndex()

        /// Creates an empty snapshot.
        public init() {}

        /// Returns the addresses of one interface, sorted.
        public func addresses(of interface: UInt32) -> [Address] {
            addresses.values.filter { $0.key.interface == interface }.sorted { $0.key < $1.key }
        }

        /// All routes, unordered.
        public var allRoutes: some Sequence<Route> { routes.lazy.flatMap { $0.value.list } }

        /// Returns the routes with this key; empty if there are none.
        public func routes(_ key: Route.Key) -> Set<Route> { routes[key]?.all ?? [] }

        /// Returns whether the snapshot contains exactly this route.
        public func contains(_ route: Route) -> Bool { routes.contains(route) }

        /// Applies one change.
        public mutating func apply(_ change: Kernel.Change) {
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
        public mutating func apply(_ changes: some Sequence<Kernel.Change>) {
            for change in changes { apply(change) }
        }

        /// Records that the kernel may have two indistinguishable routes under this key.
        mutating func noteDuplicate(_ key: Route.Key) { index.duplicates.insert(key) }

        /// Records that the kernel may have this rule twice.
        mutating func noteDuplicate(_ rule: Rule) { index.duplicateRules.insert(rule) }

        /// Removes the record that the kernel may have two indistinguishable routes under this key.
        mutating func forgetDuplicate(_ key: Route.Key) { index.duplicates.remove(key) }

        /// Adds a route. Returns false if it is already present.
        @discardableResult
        fileprivate mutating func add(_ route: Route) -> Bool {
            guard routes.add(route) else { return false }
            if route.key.destination.isDefault { defaultRoutes.insert(route.key) }
            index.add(route)
            return true
        }

        private mutating func remove(_ route: Route) {
            guard routes.remove(route) else { return }
            let others = routes[route.key]
            index.remove(route, others: others)
            if route.key.destination.isDefault, others == nil { defaultRoutes.remove(route.key) }
        }
    }
}

extension Kernel.Snapshot {
    // For the shadow of a dump, which is compared and emptied shard by shard.

    /// Copies the links of another snapshot: the state of its link decides whether a route exists.
    mutating func takeLinks(of other: Kernel.Snapshot) { links = other.links }

    /// Creates the shadow of a dump, which has no index of its routes.
    static var shadow: Kernel.Snapshot {
        var shadow = Kernel.Snapshot()
        shadow.index.isKept = false
        return shadow
    }

    /// Adds a route of a dump, and records a second route that looks the same.
    mutating func addDumped(_ route: Route) {
        if !add(route) { noteDuplicate(route.key) }
    }

    /// Removes the routes of one shard. The default routes stay unchanged, because they are not used any more.
    mutating func removeRoutes(inShard number: Int) { routes.removeShard(number) }

    /// Applies the changes of one shard to that of a complete dump. An empty shard becomes that of the dump, whose memory it takes
    /// over: otherwise, the first dump of a large table would be in memory twice.
    mutating func apply(_ changes: [Kernel.Change], leadingTo dumped: Kernel.Snapshot, inShard number: Int) {
        guard routes.shards[number].isEmpty else { return apply(changes) }
        routes.setShard(number, to: dumped.routes.shards[number])
        for case .routeAdded(let route) in changes {
            if route.key.destination.isDefault { defaultRoutes.insert(route.key) }
            index.add(route)
        }
    }

    /// Copies the record of a family's duplicate rules from a complete dump.
    mutating func takeDuplicateRules(of dumped: Kernel.Snapshot, _ family: IPAddress.Family) {
        index.duplicateRules = index.duplicateRules.filter { $0.family != family }.union(dumped.index.duplicateRules)
    }

    /// Copies the record of a shard's duplicate routes from a complete dump.
    mutating func takeDuplicates(of dumped: Kernel.Snapshot, inShard number: Int) {
        guard !index.duplicates.isEmpty || !dumped.index.duplicates.isEmpty else { return }
        index.duplicates = index.duplicates.filter { RouteTable.shard(of: $0) != number }
        index.duplicates.formUnion(dumped.index.duplicates.filter { RouteTable.shard(of: $0) == number })
    }
}

extension Kernel.Snapshot {
    /// Returns the snapshot after the loss of a link, as far as a path depends on it: routes other than default ones are not
    /// removed. The kernel removes the routes over a link that is switched off.
    func losing(_ link: Link) -> Kernel.Snapshot {
        var after = self
        after.links[link.index] = link
        guard !link.flags.contains(.up) else { return after }
        // A copy of the index would cost more than the evaluation.
        after.index.isKept = false
        for key in defaultRoutes {
            for route in routes[key]?.list ?? []
            where route.uses(interface: link.index) && !route.isMultipath && route.kind != .local && !route.kind.refuses {
                after.apply(.routeRemoved(route))
            }
        }
        return after
    }
}

extension Kernel {
    /// One difference between two snapshots. Later versions may add cases.
    @nonexhaustive public enum Change: Hashable, Sendable {
        /// A device was added or changed.
        case link(Link)
        /// The device with this index was removed, or moved to another namespace.
        case linkRemoved(UInt32)
        /// An address was added or changed.
        case address(Address)
        /// An address was removed.
        case addressRemoved(Address.Key)
        /// A route was added. A changed route is removed and added.
        case routeAdded(Route)
        /// A route was removed.
        case routeRemoved(Route)
        /// A rule was added.
        case ruleAdded(Rule)
        /// A rule was removed.
        case ruleRemoved(Rule)
        /// A nexthop object was added or changed.
        case nexthop(NexthopObject)
        /// The nexthop object with this number was removed.
        case nexthopRemoved(UInt32)
    }
}

extension Kernel.Snapshot {
    /// Returns the changes that lead from `old` to this snapshot, in the order of their tables.
    public func changes(since old: Kernel.Snapshot) -> [Kernel.Change] {
        KernelTable.allCases.flatMap { changes(since: old, in: $0) }
    }

    /// Returns the changes of one table.
    func changes(since old: Kernel.Snapshot, in table: KernelTable) -> [Kernel.Change] {
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

    private func routeChanges(since old: Kernel.Snapshot, _ family: IPAddress.Family) -> [Kernel.Change] {
        RouteTable.shards(of: family).flatMap { routeChanges(since: old, inShard: $0) }
    }

    /// Returns the changes of one shard of the routes.
    func routeChanges(since old: Kernel.Snapshot, inShard number: Int) -> [Kernel.Change] {
        let (known, new) = (old.routes.shards[number], routes.shards[number])
        return known.routes(missingIn: new).map { .routeRemoved($0) } + new.routes(missingIn: known).map { .routeAdded($0) }
    }

    private func ruleChanges(since old: Kernel.Snapshot, _ family: IPAddress.Family) -> [Kernel.Change] {
        old.rules.filter { $0.family == family && !rules.contains($0) }.map { .ruleRemoved($0) }
            + rules.filter { $0.family == family && !old.rules.contains($0) }.map { .ruleAdded($0) }
    }
}
