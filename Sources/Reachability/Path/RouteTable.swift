/// The routes of both families by key, in shards: a full Internet table in one dictionary would stall the monitor for tens of
/// milliseconds whenever it is copied, compared or grows.
package struct RouteTable: Hashable, Sendable, Sequence {
    /// The routes that share a key: one, nearly always.
    package enum Bucket: Hashable, Sendable {
        /// The only one.
        case one(Route)
        /// Several, in no order.
        case several(Set<Route>)

        /// The routes as an array: a set of one costs an allocation and a hash.
        var list: [Route] {
            switch self {
            case .one(let route): [route]
            case .several(let routes): Array(routes)
            }
        }

        /// The routes.
        package var all: Set<Route> {
            switch self {
            case .one(let route): [route]
            case .several(let routes): routes
            }
        }
    }

    typealias Shard = [Route.Key: Bucket]

    /// 100,000 routes make 800 a shard.
    static let shardsPerFamily = 128
    private(set) var shards = [Shard](repeating: [:], count: 2 * shardsPerFamily)
    /// The number of keys.
    package private(set) var count = 0

    /// Whether there is no route.
    package var isEmpty: Bool { count == 0 }

    /// The routes with this key.
    package subscript(key: Route.Key) -> Bucket? { shards[Self.shard(of: key)][key] }

    /// The keys with their routes, in no order.
    package func makeIterator() -> FlattenSequence<[[Route.Key: Bucket]]>.Iterator { shards.joined().makeIterator() }

    /// The shards of a family.
    static func shards(of family: IPAddress.Family) -> Range<Int> {
        family == .v4 ? 0..<shardsPerFamily : shardsPerFamily..<2 * shardsPerFamily
    }

    /// The number of a key's shard.
    static func shard(of key: Route.Key) -> Int {
        let address = key.destination.address
        var bits = address.low ^ address.high &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(key.table) << 40 ^ UInt64(key.metric) << 8
        bits = (bits ^ UInt64(key.destination.length) << 56) &* 0xd6e8_feb8_6659_fd93
        return Int(bits >> 57) + (address.family == .v4 ? 0 : shardsPerFamily)
    }

    mutating func add(_ route: Route) {
        let shard = Self.shard(of: route.key)
        // The key is hashed once if nothing else has it.
        switch shards[shard].updateValue(.one(route), forKey: route.key) {
        case nil: count += 1
        case .one(let other): if other != route { shards[shard][route.key] = .several([other, route]) }
        case .several(var all):
            all.insert(route)
            shards[shard][route.key] = .several(all)
        }
    }

    mutating func remove(_ route: Route) {
        let shard = Self.shard(of: route.key)
        switch shards[shard][route.key] {
        case .one(route):
            shards[shard][route.key] = nil
            count -= 1
        case .several(var all):
            all.remove(route)
            shards[shard][route.key] = all.count == 1 ? all.first.map { .one($0) } : .several(all)
        case .one, nil: break
        }
    }

    mutating func removeShard(_ number: Int) {
        count -= shards[number].count
        shards[number] = [:]
    }
}

/// Which routes go over an interface, and which interfaces the routes with a preferred source use: what a change of a link or an
/// address makes stale. And which networks are refused, and which routes and rules the kernel may have twice.
///
/// Beside the routes, so it takes no part in comparisons of snapshots.
struct RouteIndex: Hashable, Sendable {
    /// Beyond so many routes over one interface their keys are not kept: the whole table is dumped instead.
    static let limit = 2_048

    private struct Place: Hashable, Sendable {
        let family: IPAddress.Family
        let interface: UInt32
    }

    private struct Entry: Sendable {
        var count = 0
        // `nil` from the moment at which there were too many until there is none.
        var keys: Set<Route.Key>? = []
    }

    private var entries: [Place: Entry] = [:]
    private var sources: [IPAddress: [UInt32: Int]] = [:]
    private var objectRoutes = (v4: 0, v6: 0)
    /// The networks that routes refuse packets to.
    private(set) var refused = RefusedNetworks()
    /// The keys under which the kernel may have two routes that it shows alike.
    ///
    /// An IPv4 multipath route whose other next hops are dead looks like a route over the remaining next hop alone, and both may
    /// share a key. A set of routes holds one of them: when that goes, only a dump shows whether the other is still there.
    var duplicates: Set<Route.Key> = []
    /// The rules that the kernel may have twice (a request without NLM_F_EXCL); a set of rules holds one of them.
    var duplicateRules: Set<Rule> = []

    /// The keys of the family's routes over an interface, multipath routes included; `nil` if there are too many to know them.
    func keys(over interface: UInt32, _ family: IPAddress.Family) -> Set<Route.Key>? {
        entries[Place(family: family, interface: interface)].map(\.keys) ?? []
    }

    /// Whether the routes over an interface can be told from the others: not if they are too many, and not if routes of the family
    /// use nexthop objects, which may hide the interface (nexthop_compat_mode 0).
    func tellsRoutes(over interface: UInt32, _ family: IPAddress.Family) -> Bool {
        interface != 0 && (family == .v4 ? objectRoutes.v4 : objectRoutes.v6) == 0 && keys(over: interface, family) != nil
    }

    /// The interfaces of routes that prefer this source address; 0 for a route without an interface.
    func interfaces(preferring source: IPAddress) -> some Sequence<UInt32> { (sources[source] ?? [:]).keys }

    mutating func add(_ route: Route) {
        if let network = route.refusedNetwork { refused.add(network) }
        if route.nexthopObject != 0 { count(object: route.key.family, 1) }
        for interface in route.interfaces {
            let place = Place(family: route.key.family, interface: interface)
            entries[place, default: Entry()].count += 1
            if entries[place]?.count ?? 0 > Self.limit {
                entries[place]?.keys = nil
            } else {
                entries[place]?.keys?.insert(route.key)
            }
            if let source = route.preferredSource { sources[source, default: [:]][interface, default: 0] += 1 }
        }
    }

    /// Removes a route; `others` are those that still share its key.
    mutating func remove(_ route: Route, others: RouteTable.Bucket?) {
        if let network = route.refusedNetwork { refused.remove(network) }
        if route.nexthopObject != 0 { count(object: route.key.family, -1) }
        for interface in route.interfaces {
            let place = Place(family: route.key.family, interface: interface)
            entries[place]?.count -= 1
            if entries[place]?.count == 0 {
                entries[place] = nil
            } else if others?.list.contains(where: { $0.interfaces.contains(interface) }) != true {
                entries[place]?.keys?.remove(route.key)
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
    /// The interfaces of its next hops, each once; 0 if it has none.
    fileprivate var interfaces: [UInt32] {
        guard isMultipath else { return [firstHop?.interface ?? 0] }
        return Array(Set(nextHops.map(\.interface)))
    }

    /// The route without its next hops over an interface.
    func withoutHops(over interface: UInt32) -> Route {
        Route(
            key, kind: kind, nextHops: nextHops.filter { $0.interface != interface }, origin: origin, scope: scope,
            preferredSource: preferredSource, nexthopObject: nexthopObject, fingerprint: fingerprint
        )
    }
}
