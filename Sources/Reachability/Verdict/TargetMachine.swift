/// The life of one target: when to resolve, to ask for its route, to probe, and what the results mean.
package struct TargetMachine: Sendable {
    /// What the machine may look at when it decides: the present state of this host, as the path machine knows it.
    package struct Surroundings: Sendable {
        /// The interfaces by index, classified.
        package var interfaces: [UInt32: NetworkInterface]
        /// The path of the namespace.
        package var path: NetworkPath
        /// Whether an address belongs to this machine.
        package var isOwn: @Sendable (IPAddress) -> Bool
        /// Whether a name server is configured.
        package var hasResolver: Bool

        package init(
            interfaces: [UInt32: NetworkInterface], path: NetworkPath, isOwn: @escaping @Sendable (IPAddress) -> Bool,
            hasResolver: Bool
        ) {
            self.interfaces = interfaces
            self.path = path
            self.isOwn = isOwn
            self.hasResolver = hasResolver
        }
    }

    /// What happens to a target.
    package enum Event: Hashable, Sendable {
        /// The monitor is settled; the target begins.
        case begin
        /// Links, addresses, routes, rules or the resolver's configuration changed in a way that could matter to any target.
        case surroundingsChanged
        /// The machine woke from suspend.
        case resumed
        case lookup(LookupAnswer)
        case route(RouteQuery, RouteAnswer)
        case probe(ProbeResult)
        /// The neighbour table's state of a next hop; `nil` when there is no entry.
        case neighbour(Neighbour.Key, Neighbour.State?)
        /// The time of ``deadline`` has come.
        case tick
    }

    /// What the machine wants done.
    package enum Effect: Hashable, Sendable {
        case resolve(LookupRequest)
        case askRoute(RouteQuery)
        case connect(ProbeAttempt)
        case cancel(attempt: UInt64)
        case askNeighbour(Neighbour.Key)
        case publish(ServerUpdate)
        case report(ProbeReport)
    }

    package let id: TargetID
    package let endpoint: Endpoint
    package let settings: ProbeSettings
    /// When ``Event/tick`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    package var deadline: Int64? { nil }

    /// `firstNumber`: the attempt and lookup ids of this target count up from here.
    package init(id: TargetID, endpoint: Endpoint, settings: ProbeSettings, firstNumber: UInt64) {
        self.id = id
        self.endpoint = endpoint
        self.settings = settings
    }

    /// Takes one event and says what to do.
    package mutating func handle(_ event: Event, in surroundings: Surroundings, at now: Moment) -> [Effect] { [] }
}
