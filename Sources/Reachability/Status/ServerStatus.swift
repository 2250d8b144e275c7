/// The status of a server according to its probes, with the evidence. Later versions may add statuses.
@nonexhaustive public enum ServerStatus: Hashable, Sendable {
    /// The evidence is not sufficient yet.
    case unknown
    /// The server answers. `via` is the route of the last successful probe.
    case up(via: Route)
    /// The server answers, but slower or with more loss than its limits allow, or only on some of its addresses.
    case degraded(via: Route, Cause)
    /// The server does not answer, and the evidence shows that the server is at fault.
    case down(Cause)
    /// A component before the server fails: this machine's link, address, route, gateway, resolver or firewall, or a router.
    case unreachable(Cause)

    /// The route of the last successful probe.
    public struct Route: Hashable, Sendable {
        /// The address that answered.
        public let address: IPAddress
        /// The interface over which the kernel routes to the address; `nil` if it is not known.
        public let interface: NetworkInterface?
        /// The time from the TCP SYN to its answer.
        public let roundTrip: Duration

        /// Creates a route to an address.
        public init(address: IPAddress, interface: NetworkInterface?, roundTrip: Duration) {
            self.address = address
            self.interface = interface
            self.roundTrip = roundTrip
        }
    }

    /// Whether the server answers: `up` or `degraded`.
    public var isReachable: Bool {
        switch self {
        case .up, .degraded: true
        case .unknown, .down, .unreachable: false
        }
    }

    /// The cause of the status; `nil` for `up` and `unknown`.
    public var cause: Cause? {
        switch self {
        case .unknown, .up: nil
        case .degraded(_, let cause), .down(let cause), .unreachable(let cause): cause
        }
    }

    /// The route of the last successful probe; `nil` unless `up` or `degraded`.
    public var route: Route? {
        switch self {
        case .up(let route), .degraded(let route, _): route
        case .unknown, .down, .unreachable: nil
        }
    }
}

/// The case name of a ``ServerStatus``, without its evidence. The raw values are those of records.
package enum StatusName: String, Hashable, Sendable, CaseIterable {
    case unknown, up, degraded, down, unreachable
}
