/// A query to the kernel (RTM_GETROUTE): the route of a packet to a destination.
package struct RouteQuery: Hashable, Sendable, Codable {
    // The order of the fields leaves no gap between them: every target has a query.
    package var destination: IPAddress
    /// Whether the query asks for the matching route with all its next hops, rather than for the choice for this packet. The
    /// choice among several next hops may depend on the source port, which is not known before the packet is sent.
    package var showsAll: Bool
    /// The destination's TCP port, which policy rules may match; 0 for a packet of any protocol.
    package var port: UInt16
    /// The index of the interface over which the packet must be sent; 0 for the kernel's choice.
    package var interface: UInt32
    /// The packet's source address and mark; `nil` for a packet without them.
    package var selector: RouteSelector?

    package init(
        _ destination: IPAddress, interface: UInt32 = 0, port: UInt16 = 0, selector: RouteSelector? = nil, showsAll: Bool = false
    ) {
        self.destination = destination
        self.interface = interface
        self.port = port
        self.selector = selector
        self.showsAll = showsAll
    }

    /// Hashes the selector only if there is one: the targets' queries are keys.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(destination)
        hasher.combine(UInt64(interface) << 32 | UInt64(port) << 1 | (showsAll ? 1 : 0))
        if let selector { hasher.combine(selector) }
    }

    /// A fixed order, so that a replay sends the queries in the recorded order.
    static func areInOrder(_ left: RouteQuery, _ right: RouteQuery) -> Bool {
        let (one, other) = (
            (left.destination, left.interface, left.port), (right.destination, right.interface, right.port)
        )
        if one != other { return one < other }
        if left.selector != right.selector { return RouteSelector.areInOrder(left.selector, right.selector) }
        return !left.showsAll && right.showsAll
    }
}

/// The kernel's answer to a ``RouteQuery``.
package enum RouteAnswer: Hashable, Sendable {
    /// The route that the packet would take.
    case route(ChosenRoute)
    /// The kernel would not send the packet: ENETUNREACH without a route, EHOSTUNREACH for an `unreachable` route, EACCES for
    /// `prohibit`, EINVAL for `blackhole`.
    case refused(errno: Int32)

    /// The kernel did not answer, for example because memory was short. The state of the route is unknown.
    static let unanswered = RouteAnswer.refused(errno: 0)
}

/// The route that the kernel chose. Copies share one box: many targets have the same route.
package struct ChosenRoute: Hashable, Sendable {
    /// The kind of the route: unicast, or local for addresses of this machine.
    package var kind: Route.Kind {
        get { values.value.kind }
        set { values.update { $0.kind = newValue } }
    }
    /// The index of the interface.
    package var interface: UInt32 {
        get { values.value.interface }
        set { values.update { $0.interface = newValue } }
    }
    /// The router; `nil` if the destination is on the link.
    package var gateway: IPAddress? {
        get { values.value.gateway }
        set { values.update { $0.gateway = newValue } }
    }
    /// The source address that the packet would have.
    package var source: IPAddress? { values.value.source }
    package var table: UInt32 { values.value.table }
    /// All next hops of the route; empty unless the query's ``RouteQuery/showsAll`` is true.
    package var nextHops: [Route.NextHop] {
        get { values.value.nextHops }
        set { values.update { $0.nextHops = newValue } }
    }

    private struct Values: Hashable, Sendable {
        var gateway: IPAddress?
        var source: IPAddress?
        var nextHops: [Route.NextHop] = []
        var interface: UInt32
        var table: UInt32
        var kind: Route.Kind
    }

    private var values: Boxed<Values>

    package init(
        kind: Route.Kind = .unicast, interface: UInt32, gateway: IPAddress? = nil, source: IPAddress? = nil, table: UInt32 = 254
    ) {
        values = Boxed(Values(gateway: gateway, source: source, interface: interface, table: table, kind: kind))
    }
}

/// The kernel's answers by query. There are nearly always two queries and at most a few dozen, so a linear search costs less than
/// a hash.
package struct RouteAnswers: Sendable, Equatable {
    private struct Entry: Sendable, Equatable {
        let query: RouteQuery
        var answer: RouteAnswer
    }

    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    package var queries: [RouteQuery] { entries.map(\.query) }

    package subscript(query: RouteQuery) -> RouteAnswer? { entries.first { $0.query == query }?.answer }

    package mutating func add(_ answer: RouteAnswer, to query: RouteQuery) {
        if let index = entries.firstIndex(where: { $0.query == query }) {
            entries[index].answer = answer
        } else {
            entries.append(Entry(query: query, answer: answer))
        }
    }

    package mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

    /// Returns whether both have the same answers, in any order.
    package static func == (left: RouteAnswers, right: RouteAnswers) -> Bool {
        left.entries.count == right.entries.count && left.entries.allSatisfy { right[$0.query] == $0.answer }
    }
}

extension RouteAnswer {
    /// Creates an answer from the kernel's reply to RTM_GETROUTE; `nil` if there is no reply.
    ///
    /// For a query with an interface, the kernel returns the complete matching route. The next hop over that interface is used.
    /// If the kernel does not list the hops of nexthop objects (`nexthop_compat_mode` 0), only the interface is known.
    init?(_ messages: [NetlinkMessage], to query: RouteQuery) {
        switch messages.first?.event {
        case .route(let route, _, _):
            let unlistedHop = query.interface != 0 && route.nexthopObject != 0 ? Route.NextHop(interface: query.interface) : nil
            let bound = route.isMultipath ? route.nextHops.first { $0.interface == query.interface } : nil
            guard let hop = bound ?? route.firstHop ?? unlistedHop else {
                // A route that refuses packets has no next hop.
                self = .refused(errno: RouteAnswer.noRoute)
                return
            }
            // The kernel names no source for a query with one.
            var chosen = ChosenRoute(
                kind: route.kind, interface: hop.interface, gateway: hop.gateway,
                source: query.selector?.source ?? route.preferredSource, table: route.key.table
            )
            if query.showsAll { chosen.nextHops = route.nextHops }
            self = .route(chosen)
        case .done(let errno) where errno != 0: self = .refused(errno: query.interface == 0 ? errno : RouteAnswer.noRoute)
        default: return nil
        }
    }
}

extension RouteAnswer {
    /// The number of ENETUNREACH.
    static let noRoute: Int32 = 101
}
