/// A question to the kernel (RTM_GETROUTE): which way would a packet to this address go?
package struct RouteQuery: Hashable, Sendable, Codable {
    package var destination: IPAddress
    /// The index of the interface that the packet must leave by; 0 for the kernel's choice.
    package var interface: UInt32
    /// The TCP port that it goes to, for which policy rules may have a way of their own; 0 for a packet of any kind.
    package var port: UInt16
    /// Asks for the whole route that matches, with all its next hops, not for the one that this packet would take: of a multipath
    /// route that may depend on the sender's port, which nobody knows before it is sent.
    package var showsAll: Bool

    package init(_ destination: IPAddress, interface: UInt32 = 0, port: UInt16 = 0, showsAll: Bool = false) {
        self.destination = destination
        self.interface = interface
        self.port = port
        self.showsAll = showsAll
    }

    /// A fixed order, so that a recording can be run again.
    static func areInOrder(_ left: RouteQuery, _ right: RouteQuery) -> Bool {
        let (one, other) = (
            (left.destination, left.interface, left.port), (right.destination, right.interface, right.port)
        )
        return one == other ? !left.showsAll && right.showsAll : one < other
    }
}

/// The kernel's answer to a ``RouteQuery``.
package enum RouteAnswer: Hashable, Sendable {
    /// It would go this way.
    case route(ChosenRoute)
    /// It would not go: ENETUNREACH no route, EHOSTUNREACH an `unreachable` route, EACCES `prohibit`, EINVAL `blackhole`.
    case refused(errno: Int32)

    /// The kernel gave no answer, as when memory is short: nothing is learnt.
    static let unanswered = RouteAnswer.refused(errno: 0)
}

/// The way that the kernel chose.
package struct ChosenRoute: Hashable, Sendable {
    /// Unicast, or local for addresses of this machine.
    package var kind: Route.Kind
    /// The index of the interface.
    package var interface: UInt32
    /// The router; `nil` on the link itself.
    package var gateway: IPAddress?
    /// The address that it would be sent from.
    package var source: IPAddress?
    package var table: UInt32
    /// All next hops of the route; empty unless they were asked for (``RouteQuery/showsAll``).
    package var nextHops: [Route.NextHop] = []

    package init(
        kind: Route.Kind = .unicast, interface: UInt32, gateway: IPAddress? = nil, source: IPAddress? = nil, table: UInt32 = 254
    ) {
        self.kind = kind
        self.interface = interface
        self.gateway = gateway
        self.source = source
        self.table = table
    }
}

/// What the kernel has answered. Nearly always two questions, at most a few dozen: walking through them costs less than a hash.
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

    /// Whether both hold the same answers, in whatever order they came.
    package static func == (left: RouteAnswers, right: RouteAnswers) -> Bool {
        left.entries.count == right.entries.count && left.entries.allSatisfy { right[$0.query] == $0.answer }
    }
}
