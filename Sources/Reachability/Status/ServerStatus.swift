/// What a ``ServerMonitor`` knows of its server.
public struct ServerUpdate: Hashable, Sendable {
    /// The five states of a target; the raw values are the contract's.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Not enough evidence yet.
        case unknown
        /// It answers.
        case up
        /// It answers, but slower or lossier than its limits, or only over some of its addresses.
        case degraded
        /// It does not answer, and as far as the evidence goes the server is at fault.
        case down
        /// Something before the server fails: this machine's link, address, route, gateway, resolver or firewall, or a router.
        case unreachable
    }

    /// How the last successful probe got there.
    public struct Route: Hashable, Sendable {
        /// The address that answered.
        public let address: IPAddress
        /// The interface that the kernel routes to it over.
        public let interface: NetworkInterface?
        /// The round trip of the TCP handshake.
        public let roundTrip: Duration

        package init(address: IPAddress, interface: NetworkInterface?, roundTrip: Duration) {
            self.address = address
            self.interface = interface
            self.roundTrip = roundTrip
        }
    }

    /// What a program asks first: can I reach it, and if not, why.
    public enum Status: Hashable, Sendable {
        /// Not enough evidence yet.
        case unknown
        /// It answers.
        case reachable(via: Route)
        /// It does not, for this reason.
        case unreachable(Cause)
    }

    /// The server, as given.
    public let endpoint: Endpoint
    /// The state.
    public let state: State
    /// The reason, always set unless up or unknown.
    public let cause: Cause?
    /// Since when the state holds.
    public let since: Moment
    /// The address last tried, or that answered.
    public let address: IPAddress?
    /// The interface that the kernel routes to `address` over.
    public let interface: NetworkInterface?
    /// The round trip of the last successful probe; `nil` unless up or degraded.
    public let roundTrip: Duration?
    /// Whether this is the present rather than a change: true on the first element that a subscriber gets.
    public let isInitial: Bool
    /// When the input that caused it was read.
    public let moment: Moment

    package init(
        endpoint: Endpoint, state: State, cause: Cause?, since: Moment, address: IPAddress?, interface: NetworkInterface?,
        roundTrip: Duration?, isInitial: Bool, moment: Moment
    ) {
        self.endpoint = endpoint
        self.state = state
        self.cause = cause
        self.since = since
        self.address = address
        self.interface = interface
        self.roundTrip = roundTrip
        self.isInitial = isInitial
        self.moment = moment
    }

    /// The state as reachable or not, with its route or its reason.
    public var status: Status {
        switch state {
        case .unknown: return .unknown
        case .up, .degraded:
            guard let address, let roundTrip else { return .unknown }
            return .reachable(via: Route(address: address, interface: interface, roundTrip: roundTrip))
        case .down, .unreachable:
            return cause.map { .unreachable($0) } ?? .unknown
        }
    }

    package func asInitial() -> ServerUpdate {
        ServerUpdate(
            endpoint: endpoint, state: state, cause: cause, since: since, address: address, interface: interface,
            roundTrip: roundTrip, isInitial: true, moment: moment
        )
    }
}
