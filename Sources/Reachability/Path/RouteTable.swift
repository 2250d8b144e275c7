/// The routes of both families by key, in shards. With a full Internet table in one dictionary, each copy, comparison or growth
/// would block the monitor for tens of milliseconds. ``RouteShard`` stores the routes; 100,000 of them take 8 MB.
package struct RouteTable: Hashable, Sendable, Sequence {
    /// The routes that share a key: nearly always one.
    package enum Bucket: Hashable, Sendable {
        /// A single route.
        case one(Route)
        /// Several routes, unordered.
        case several(Set<Route>)

        /// The routes as an array. A set with one element would need an allocation and a hash.
        var list: [Route] {
            switch self {
            case .one(let route): [route]
            case .several(let routes): Array(routes)
            }
        }

        /// The routes as a set.
        package var all: Set<Route> {
            switch self {
            case .one(let route): [route]
            case .several(let routes): routes
            }
        }
    }

    package typealias Element = (key: Route.Key, value: Bucket)

    /// The number of shards. 100,000 routes give 800 per shard.
    static let shardsPerFamily = 128
    private(set) var shards = emptyShards
    // Shared until the first route is added: most dumps have no routes.
    private static let emptyShards = [RouteShard](repeating: RouteShard(), count: 2 * shardsPerFamily)
    /// The number of keys.
    package private(set) var count = 0

    /// Whether the table has no routes.
    package var isEmpty: Bool { count == 0 }

    /// The routes with this key; `nil` if there are none.
    package subscript(key: Route.Key) -> Bucket? { shards[Self.shard(of: key)][key] }

    /// Iterates over the keys with their routes, unordered.
    package func makeIterator() -> Iterator { Iterator(shards: shards.makeIterator()) }

    package struct Iterator: IteratorProtocol {
        fileprivate var shards: IndexingIterator<[RouteShard]>
        private var buckets = [Element]().makeIterator()

        fileprivate init(shards: IndexingIterator<[RouteShard]>) { self.shards = shards }

        package mutating func next() -> Element? {
            while true {
                if let bucket = buckets.next() { return bucket }
                guard let shard = shards.next() else { return nil }
                buckets = shard.buckets.makeIterator()
            }
        }
    }

    /// Returns the numbers of a family's shards.
    static func shards(of family: IPAddress.Family) -> Range<Int> {
        family == .v4 ? 0..<shardsPerFamily : shardsPerFamily..<2 * shardsPerFamily
    }

    /// Returns the number of a key's shard.
    static func shard(of key: Route.Key) -> Int {
        let address = key.destination.address
        var bits = address.low ^ address.high &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(key.table) << 40 ^ UInt64(key.metric) << 8
        bits = (bits ^ UInt64(key.destination.length) << 56) &* 0xd6e8_feb8_6659_fd93
        return Int(bits >> 57) + (address.family == .v4 ? 0 : shardsPerFamily)
    }

    /// Returns whether the table contains exactly this route.
    func contains(_ route: Route) -> Bool { shards[Self.shard(of: route.key)].contains(route) }

    /// Adds a route. Returns false if it is already present.
    mutating func add(_ route: Route) -> Bool {
        guard let isNew = shards[Self.shard(of: route.key)].add(route) else { return false }
        if isNew { count += 1 }
        return true
    }

    /// Removes a route. Returns false if it is not present.
    mutating func remove(_ route: Route) -> Bool {
        guard let wasLast = shards[Self.shard(of: route.key)].remove(route) else { return false }
        if wasLast { count -= 1 }
        return true
    }

    mutating func removeShard(_ number: Int) { setShard(number, to: RouteShard()) }

    /// Replaces a shard by that of another table. Both share its memory until one of them changes.
    mutating func setShard(_ number: Int, to shard: RouteShard) {
        count += shard.count - shards[number].count
        shards[number] = shard
    }
}

/// The routes of each interface, and the interfaces of routes with a preferred source. These routes become stale when a link or
/// an address changes. Also the refused networks, and the routes and rules that the kernel may have twice.
///
/// The index is derived from the routes, so it takes no part in comparisons of snapshots.
struct RouteIndex: Hashable, Sendable {
    /// The maximum number of routes over one interface whose keys are stored. If there are more, the complete table is dumped.
    static let limit = 2_048

    private struct Place: Hashable, Sendable {
        let family: IPAddress.Family
        let interface: UInt32
    }

    private struct Entry: Sendable {
        var count = 0
        // `nil` after the limit was exceeded, until no route remains.
        var keys: Set<Route.Key>? = []

        mutating func add(_ key: Route.Key) {
            count += 1
            if count > RouteIndex.limit { keys = nil } else { keys?.insert(key) }
        }
    }

    /// False in the shadow of a dump, which is only compared: without the index, a large table is read in less time.
    var isKept = true
    private var entries: [Place: Entry] = [:]
    private var sources: [IPAddress: [UInt32: Int]] = [:]
    private var objectRoutes = (v4: 0, v6: 0)
    /// The networks that routes refuse.
    private(set) var refused = RefusedNetworks()
    /// The keys under which the kernel may have two indistinguishable routes.
    ///
    /// An IPv4 multipath route with only one live next hop looks like a route over that next hop alone, and both may share a key.
    /// The set of routes contains one of them. After its removal, only a dump shows whether the other still exists.
    var duplicates: Set<Route.Key> = []
    /// The rules that the kernel may have twice, after a request without NLM_F_EXCL. The set of rules contains one of them.
    var duplicateRules: Set<Rule> = []

    /// Returns the keys of the family's routes over an interface, including multipath routes; `nil` if the limit was exceeded.
    func keys(over interface: UInt32, _ family: IPAddress.Family) -> Set<Route.Key>? {
        entries[Place(family: family, interface: interface)].map(\.keys) ?? []
    }

    /// Returns whether the index knows all routes over an interface. It does not if the limit was exceeded, or if routes of the
    /// family use nexthop objects, which may hide the interface (nexthop_compat_mode 0).
    func knowsRoutes(over interface: UInt32, _ family: IPAddress.Family) -> Bool {
        interface != 0 && (family == .v4 ? objectRoutes.v4 : objectRoutes.v6) == 0 && keys(over: interface, family) != nil
    }

    /// Returns the interfaces of routes that prefer this source address; 0 for a route without an interface.
    func interfaces(preferring source: IPAddress) -> some Sequence<UInt32> { (sources[source] ?? [:]).keys }

    mutating func add(_ route: Route) {
        guard isKept else { return }
        if let network = route.refusedNetwork { refused.add(network) }
        if route.nexthopObject != 0 { count(object: route.key.family, 1) }
        for interface in route.interfaces {
            let place = Place(family: route.key.family, interface: interface)
            entries[place, default: Entry()].add(route.key)
            if let source = route.preferredSource { sources[source, default: [:]][interface, default: 0] += 1 }
        }
    }

    /// Removes a route. `others` are the remaining routes with its key.
    mutating func remove(_ route: Route, others: RouteTable.Bucket?) {
        guard isKept else { return }
        if let network = route.refusedNetwork { refused.remove(network) }
        if route.nexthopObject != 0 { count(object: route.key.family, -1) }
        for interface in route.interfaces {
            let place = Place(family: route.key.family, interface: interface)
            if let entry = entries.index(forKey: place) {
                entries.values[entry].count -= 1
                if entries.values[entry].count == 0 {
                    entries.remove(at: entry)
                } else if others?.list.contains(where: { $0.interfaces.contains(interface) }) != true {
                    entries.values[entry].keys?.remove(route.key)
                }
            }
            guard let source = route.preferredSource else { continue }
            sources[source]?[interface, default: 1] -= 1
            if sources[source]?[interface] == 0 { sources[source]?[interface] = nil }
            if sources[source]?.isEmpty == true { sources[source] = nil }
        }
    }

    private mutating func count(object family: IPAddress.Family, _ step: Int) {
        if family == .v4 { objectRoutes.v4 += step } else { objectRoutes.v6 += step }
    }

    static func == (left: RouteIndex, right: RouteIndex) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
}

extension Route {
    /// The interfaces of the route's next hops, each once; 0 if there are none.
    fileprivate var interfaces: [UInt32] {
        guard isMultipath else { return [firstHop?.interface ?? 0] }
        return Array(Set(nextHops.map(\.interface)))
    }

    /// Returns the route without its next hops over an interface.
    func withoutHops(over interface: UInt32) -> Route {
        Route(
            key, kind: kind, nextHops: nextHops.filter { $0.interface != interface }, origin: origin, scope: scope,
            preferredSource: preferredSource, nexthopObject: nexthopObject, fingerprint: fingerprint
        )
    }
}
