public import FoundationEssentials

/// A server's status, and when it changed.
public struct ServerUpdate: Hashable, Sendable {
    /// The server, as given.
    public let endpoint: Endpoint
    package let state: ServerState
    /// The reason; `nil` if the server is up or its status unknown.
    public let cause: Cause?
    package let stateMoment: Moment
    /// The address that was tried last, or that answered.
    public let address: IPAddress?
    /// The interface over which the kernel routes to ``address``; `nil` if it is not known.
    public let interface: NetworkInterface?
    /// The round trip of the last successful probe; `nil` unless the server is up or degraded.
    public let roundTrip: Duration?
    /// Whether this is the present status rather than a change: true for the first element that a subscriber receives.
    public let isInitial: Bool
    package let moment: Moment

    package init(
        endpoint: Endpoint, state: ServerState, cause: Cause?, since: Moment, address: IPAddress?, interface: NetworkInterface?,
        roundTrip: Duration?, isInitial: Bool, moment: Moment
    ) {
        self.endpoint = endpoint
        self.state = state
        self.cause = cause
        stateMoment = since
        self.address = address
        self.interface = interface
        self.roundTrip = roundTrip
        self.isInitial = isInitial
        self.moment = moment
    }

    /// An update as a ``ServerMonitor`` publishes it, for tests and previews.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - status: its status.
    ///   - since: when the status began; by default `date`.
    ///   - isInitial: whether this is the present status rather than a change.
    ///   - date: when the update was published.
    public init(
        endpoint: Endpoint, status: ServerStatus, since: Date? = nil, isInitial: Bool = false, date: Date = Date()
    ) {
        let state: ServerState =
            switch status {
            case .unknown: .unknown
            case .up: .up
            case .degraded: .degraded
            case .down: .down
            case .unreachable: .unreachable
            }
        self.init(
            endpoint: endpoint, state: state, cause: status.cause, since: Moment(since ?? date), address: status.route?.address,
            interface: status.route?.interface, roundTrip: status.route?.roundTrip, isInitial: isInitial, moment: Moment(date))
    }

    /// The status, with its route or its cause.
    public var status: ServerStatus {
        let route = address.flatMap { address in
            roundTrip.map { ServerStatus.Route(address: address, interface: interface, roundTrip: $0) }
        }
        return switch (state, route, cause) {
        case (.up, let route?, _): .up(via: route)
        case (.degraded, let route?, let cause?): .degraded(via: route, cause)
        case (.down, _, let cause?): .down(cause)
        case (.unreachable, _, let cause?): .unreachable(cause)
        default: .unknown
        }
    }

    /// When the status began.
    public var since: Date { stateMoment.date }
    /// When the change was read, by the wall clock.
    public var date: Date { moment.date }
    /// When the change was read, by a clock that nobody sets.
    public var instant: ContinuousClock.Instant { moment.instant }

    package func asInitial() -> ServerUpdate {
        ServerUpdate(
            endpoint: endpoint, state: state, cause: cause, since: stateMoment, address: address, interface: interface,
            roundTrip: roundTrip, isInitial: true, moment: moment
        )
    }
}
