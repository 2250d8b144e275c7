/// The routes of one shard of a ``RouteTable``. A shard with few routes is a list. In a larger one, each route takes a key of 20
/// bytes and a number of 4: the table may have a million routes, but they have few next hops, so everything except the
/// destination's address is stored once per shard.
struct RouteShard: Sendable {
    /// A key in the shard: the destination's address and the number of the key's other fields.
    fileprivate struct PackedKey: Hashable, Sendable {
        let high: UInt64
        let low: UInt64
        let frame: UInt32

        init(_ address: IPAddress, _ frame: UInt32) { (high, low, self.frame) = (address.high, address.low, frame) }

        init(_ other: PackedKey, _ frame: UInt32) { (high, low, self.frame) = (other.high, other.low, frame) }

        func hash(into hasher: inout Hasher) {
            if high != 0 { hasher.combine(high) }
            hasher.combine(low)
            hasher.combine(frame)
        }

        func address(_ family: IPAddress.Family) -> IPAddress {
            family == .v4 ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : IPAddress(v6: high, low)
        }
    }

    /// The fields of a route's key, except for the destination's address.
    fileprivate struct Frame: Hashable, Sendable {
        let table: UInt32
        let metric: UInt32
        let family: IPAddress.Family
        let length: UInt8
        let typeOfService: UInt8
        let source: IPPrefix?

        init(_ key: Route.Key) {
            (table, metric, typeOfService, source) = (key.table, key.metric, key.typeOfService, key.source)
            (family, length) = (key.family, key.destination.length)
        }

        func key(_ packed: PackedKey) -> Route.Key {
            Route.Key(
                table: table, metric: metric, destination: IPPrefix(packed.address(family), length: length), source: source,
                typeOfService: typeOfService)
        }
    }

    /// The fields of a route, except for its key.
    fileprivate struct Body: Hashable, Sendable {
        private static let key = Route.Key(destination: IPPrefix(IPAddress(v4: 0), length: 0))
        /// The route with a placeholder for its key.
        let route: Route

        init(_ route: Route) {
            var body = route
            body.key = Self.key
            self.route = body
        }

        func route(_ key: Route.Key) -> Route {
            var route = self.route
            route.key = key
            return route
        }
    }

    fileprivate struct Contents: Sendable {
        /// The number of the body of each key's only route, or ``several``.
        var entries: [PackedKey: UInt32] = [:]
        /// The bodies of the routes that share a key, at least two, unordered.
        var shared: [PackedKey: [UInt32]] = [:]
        var frames = Interned<Frame>()
        var bodies = Interned<Body>()

        func packed(_ key: Route.Key) -> PackedKey? {
            frames.number(of: Frame(key)).map { PackedKey(key.destination.address, $0) }
        }

        /// Returns the numbers of the bodies under a key.
        func numbers(_ packed: PackedKey, _ entry: UInt32) -> [UInt32] {
            entry == RouteShard.several ? shared[packed] ?? [] : [entry]
        }

        func key(_ packed: PackedKey) -> Route.Key { frames[packed.frame].key(packed) }

        func bucket(_ packed: PackedKey, _ entry: UInt32) -> RouteTable.Bucket {
            let key = key(packed)
            guard entry == RouteShard.several else { return .one(bodies[entry].route(key)) }
            return .several(Set((shared[packed] ?? []).map { bodies[$0].route(key) }))
        }
    }

    fileprivate static let several = UInt32.max

    private enum Storage: Sendable {
        /// Up to ``listLimit`` routes with different keys. A list needs one allocation, which remains when its routes are removed.
        /// A comparison costs less than a hash. A link that goes up or down adds or removes five routes.
        case list([Route])
        // An array of one element: one reference, which copies of a table share until the shard is changed.
        case packed([Contents])
    }

    private var storage = Storage.list([])

    /// The maximum number of routes in a list.
    static let listLimit = 8

    /// The number of keys.
    var count: Int {
        switch storage {
        case .list(let routes): routes.count
        case .packed(let box): box[0].entries.count
        }
    }

    var isEmpty: Bool { count == 0 }

    /// The routes with this key; `nil` if there are none.
    subscript(key: Route.Key) -> RouteTable.Bucket? {
        switch storage {
        case .list(let routes): return routes.first { $0.key == key }.map { .one($0) }
        case .packed(let box):
            guard let packed = box[0].packed(key) else { return nil }
            return box[0].entries[packed].map { box[0].bucket(packed, $0) }
        }
    }

    func contains(_ route: Route) -> Bool {
        switch storage {
        case .list(let routes): return routes.contains(route)
        case .packed(let box):
            guard let packed = box[0].packed(route.key), let entry = box[0].entries[packed],
                let body = box[0].bodies.number(of: Body(route))
            else { return false }
            return entry == body || entry == Self.several && box[0].numbers(packed, entry).contains(body)
        }
    }

    /// The keys with their routes, unordered.
    var buckets: [RouteTable.Element] {
        switch storage {
        case .list(let routes): routes.map { (key: $0.key, value: .one($0)) }
        case .packed(let box): box[0].entries.map { (key: box[0].key($0), value: box[0].bucket($0, $1)) }
        }
    }

    /// Returns the routes whose fields except for the key match. `isMatching` receives a route whose key may be a placeholder, and
    /// in a large shard once for each of the few different routes.
    func routes(withBody isMatching: (Route) -> Bool) -> [Route] {
        let contents: Contents
        switch storage {
        case .list(let routes): return routes.filter(isMatching)
        case .packed(let box): contents = box[0]
        }
        let matches = contents.bodies.map { isMatching($0.route) }
        guard matches.contains(true) else { return [] }
        var found: [Route] = []
        for (packed, entry) in contents.entries {
            for number in contents.numbers(packed, entry) where matches[Int(number)] {
                found.append(contents.bodies[number].route(contents.key(packed)))
            }
        }
        return found
    }

    /// Returns the routes that `other` does not have.
    func routes(missingIn other: RouteShard) -> [Route] {
        guard case .packed(let ownBox) = storage, case .packed(let otherBox) = other.storage else {
            return routes { _ in true }.filter { !other.contains($0) }
        }
        let (own, other) = (ownBox[0], otherBox[0])
        var missing: [Route] = []
        let frames = own.frames.map { other.frames.number(of: $0) }
        let bodies = own.bodies.map { other.bodies.number(of: $0) }
        for (packed, entry) in own.entries {
            var present: [UInt32] = []
            if let frame = frames[Int(packed.frame)] {
                let place = PackedKey(packed, frame)
                if let found = other.entries[place] {
                    if entry != Self.several, bodies[Int(entry)] == found { continue }
                    present = other.numbers(place, found)
                }
            }
            for number in own.numbers(packed, entry) {
                if let body = bodies[Int(number)], present.contains(body) { continue }
                missing.append(own.bodies[number].route(own.key(packed)))
            }
        }
        return missing
    }

    /// Adds a route.
    ///
    /// - Returns: whether the key is new, or another route already has it; `nil` if the route is already present.
    mutating func add(_ route: Route) -> Bool? {
        // The storage is moved out of the property, so that its array has one owner and is changed in place.
        switch storage {
        case .list(var routes):
            let known = routes.first { $0.key == route.key }
            if known == route { return nil }
            storage = .list([])
            if known == nil, routes.count < Self.listLimit {
                routes.append(route)
                storage = .list(routes)
                return true
            }
            var contents = Contents()
            for route in routes { _ = contents.add(route) }
            defer { storage = .packed([contents]) }
            return contents.add(route)
        case .packed(var box):
            storage = .list([])
            defer { storage = .packed(box) }
            return box[0].add(route)
        }
    }

    /// Removes a route.
    ///
    /// - Returns: whether the route was the last one with its key; `nil` if the route is not present.
    mutating func remove(_ route: Route) -> Bool? {
        switch storage {
        case .list(var routes):
            guard let place = routes.firstIndex(of: route) else { return nil }
            storage = .list([])
            routes.remove(at: place)
            storage = .list(routes)
            return true
        case .packed(var box):
            storage = .list([])
            let wasLast = box[0].remove(route)
            if !box[0].entries.isEmpty { storage = .packed(box) }
            return wasLast
        }
    }
}

extension RouteShard.Contents {
    fileprivate mutating func add(_ route: Route) -> Bool? {
        let frame = frames.retain(RouteShard.Frame(route.key))
        let body = bodies.retain(RouteShard.Body(route))
        let packed = RouteShard.PackedKey(route.key.destination.address, frame)
        // The key is hashed only once if no other route has it.
        guard let entry = entries.updateValue(body, forKey: packed) else { return true }
        var numbers = numbers(packed, entry)
        guard !numbers.contains(body) else {
            entries[packed] = entry
            frames.release(frame)
            bodies.release(body)
            return nil
        }
        numbers.append(body)
        shared[packed] = numbers
        entries[packed] = RouteShard.several
        return false
    }

    fileprivate mutating func remove(_ route: Route) -> Bool? {
        guard let packed = packed(route.key), let entry = entries[packed],
            let body = bodies.number(of: RouteShard.Body(route))
        else { return nil }
        var numbers = numbers(packed, entry)
        guard let place = numbers.firstIndex(of: body) else { return nil }
        numbers.remove(at: place)
        entries[packed] = numbers.count > 1 ? RouteShard.several : numbers.first
        shared[packed] = numbers.count > 1 ? numbers : nil
        frames.release(packed.frame)
        bodies.release(body)
        return numbers.isEmpty
    }
}

extension RouteShard: Hashable {
    static func == (left: RouteShard, right: RouteShard) -> Bool {
        left.count == right.count && left.routes(missingIn: right).isEmpty && right.routes(missingIn: left).isEmpty
    }

    func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
