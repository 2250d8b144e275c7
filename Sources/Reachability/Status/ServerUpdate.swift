public import FoundationEssentials
internal import Pacing

/// Whether a job that reports in runs now.
package enum JobPhase: String, Hashable, Sendable, CaseIterable {
    case idle
    case running
}

/// A server's status and the time of its last change.
public struct ServerUpdate: Hashable, Sendable {
    /// The server, as given to the monitor.
    public var endpoint: Endpoint { values.value.endpoint }
    package var statusName: StatusName { values.value.statusName }
    /// The cause of the status; `nil` if the server is up or its status is unknown.
    public var cause: Cause? { values.value.cause }
    /// The cause of the last failure, if the failures are too few to change the status (``ProbeSettings/failAfter``). It is `nil` if the last probe
    /// has succeeded, and if the server is down or unreachable.
    public var pending: Cause? { values.value.pending }
    /// The time at which the first failure was seen since the server was up; `nil` if none was.
    package var failingSince: Moment? {
        values.value.failingMonotonic.map { time in
            let age = moment.monotonicNanoseconds.addingSaturated(-time)
            return moment.advanced(by: .nanoseconds(-age))
        }
    }
    package var statusMoment: Moment {
        Moment(monotonicNanoseconds: values.value.sinceMonotonic, wallClockNanoseconds: values.value.sinceWallClock)
    }
    /// The time of the first failed probe that counts towards the present failure.
    package var failureMoment: Moment { failingSince ?? statusMoment }
    /// The address that answered, or the last one that was tried; `nil` if none was tried.
    public var address: IPAddress? { values.value.address }
    /// The interface over which the kernel routes to ``address``; `nil` if it is not known.
    public var interface: NetworkInterface? { values.value.interface }
    /// The round trip of the last successful probe; `nil` unless the server is up or degraded.
    public var roundTrip: Duration? {
        values.value.roundTripNanoseconds < 0 ? nil : .nanoseconds(values.value.roundTripNanoseconds)
    }
    /// The time from the start of the connection to the complete answer of the last successful probe, redirects included and names apart; `nil`
    /// unless the server is up or degraded. For a TCP target it is the time of the connection.
    public var responseTime: Duration? {
        values.value.responseNanoseconds < 0 ? nil : .nanoseconds(values.value.responseNanoseconds)
    }
    /// The phases of that time, and the resolution of the name.
    package var phases: PhaseTimes { values.value.phases }
    /// The time at which the server's certificate expires, or another one with which it was verified, if that is earlier; `nil` if no
    /// handshake has shown it, and for targets without TLS.
    public var certificateExpiration: Date? { certificateEnd.map { Date(timeIntervalSince1970: Double($0)) } }
    /// The same time, in seconds since 1970.
    package var certificateEnd: Int64? { values.value.certificateEnd == .min ? nil : values.value.certificateEnd }
    /// Whether the server's probes succeed and fail in turn: more than 30 % weighted changes in the last 20 results, until it is less
    /// than 25 %.
    public var isFlapping: Bool { values.value.isFlapping }
    /// Whether the server's probes wait because the budget of its metered interface is used up (``MeteredLimits/bytesPerDay``). The
    /// status is that of the last probe.
    public var isPaused: Bool { values.value.isPaused }
    /// The addresses of the server's name, each with its status, IPv4 first; empty unless all of them are probed
    /// (``ProbeSettings/addresses``), and for targets without a name.
    public var addresses: [AddressStatus] { values.value.addresses }
    /// Whether the job of a `heartbeat:` target runs; `nil` for other targets.
    package var job: JobPhase? { values.value.job }
    /// Whether the update is the present status rather than a change. True for the first element that a subscriber receives.
    public var isInitial: Bool { values.value.isInitial }
    package var moment: Moment { values.value.moment }

    private struct Values: Hashable, Sendable {
        let endpoint: Endpoint
        let cause: Cause?
        let pending: Cause?
        let interface: NetworkInterface?
        let address: IPAddress?
        let moment: Moment
        let sinceMonotonic: Int64
        let sinceWallClock: Int64
        let failingMonotonic: Int64?
        /// -1 for `nil`.
        let roundTripNanoseconds: Int64
        /// -1 for `nil`.
        let responseNanoseconds: Int64
        let phases: PhaseTimes
        let addresses: [AddressStatus]
        /// `.min` for `nil`.
        let certificateEnd: Int64
        // After the other values, because values are aligned to their own size.
        let isFlapping: Bool
        let isPaused: Bool
        let isInitial: Bool
        let statusName: StatusName
        let job: JobPhase?
    }

    // The target's machine, the publisher and the readers of an update share one box.
    private let values: Boxed<Values>

    package init(
        endpoint: Endpoint, statusName: StatusName, cause: Cause?, pending: Cause? = nil, failingSince: Moment? = nil,
        since: Moment,
        address: IPAddress?, interface: NetworkInterface?, roundTrip: Duration?, responseTime: Duration? = nil,
        phases: PhaseTimes = PhaseTimes(), certificateEnd: Int64? = nil, addresses: [AddressStatus] = [],
        isFlapping: Bool = false,
        isPaused: Bool = false, job: JobPhase? = nil, isInitial: Bool, moment: Moment
    ) {
        values = Boxed(
            Values(
                endpoint: endpoint, cause: cause, pending: pending, interface: interface, address: address, moment: moment,
                sinceMonotonic: since.monotonicNanoseconds, sinceWallClock: since.wallClockNanoseconds,
                failingMonotonic: failingSince?.monotonicNanoseconds,
                roundTripNanoseconds: roundTrip.map { max(0, $0.saturatingNanoseconds) } ?? -1,
                responseNanoseconds: responseTime.map { max(0, $0.saturatingNanoseconds) } ?? -1,
                phases: phases, addresses: addresses, certificateEnd: certificateEnd ?? .min, isFlapping: isFlapping,
                isPaused: isPaused, isInitial: isInitial,
                statusName: statusName, job: job))
    }

    /// Creates an update like those that ``ServerMonitor`` publishes, for tests and previews.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - status: the server's status.
    ///   - since: the time at which the status began; by default `date`.
    ///   - isInitial: whether the update is the present status rather than a change.
    ///   - date: the time at which the update was published.
    public init(
        endpoint: Endpoint, status: ServerStatus, since: Date? = nil, isInitial: Bool = false, date: Date = Date()
    ) {
        let statusName: StatusName =
            switch status {
            case .unknown: .unknown
            case .up: .up
            case .degraded: .degraded
            case .down: .down
            case .unreachable: .unreachable
            }
        self.init(
            endpoint: endpoint, statusName: statusName, cause: status.cause, since: Moment(since ?? date),
            address: status.route?.address,
            interface: status.route?.interface, roundTrip: status.route?.roundTrip, isInitial: isInitial, moment: Moment(date))
    }

    /// The status, with its route or its cause.
    public var status: ServerStatus {
        let route = address.flatMap { address in
            roundTrip.map { ServerStatus.Route(address: address, interface: interface, roundTrip: $0) }
        }
        return switch (statusName, route, cause) {
        case (.up, let route?, _): .up(via: route)
        case (.degraded, let route?, let cause?): .degraded(via: route, cause)
        case (.down, _, let cause?): .down(cause)
        case (.unreachable, _, let cause?): .unreachable(cause)
        default: .unknown
        }
    }

    /// The time at which the status began, by the wall clock.
    public var since: Date { statusMoment.date }
    /// The time at which the change was read, by the wall clock.
    public var date: Date { moment.date }
    /// The time at which the change was read, by a clock that is never set.
    public var instant: ContinuousClock.Instant { moment.instant }

    package func asInitial() -> ServerUpdate {
        isInitial
            ? self
            : with(
                roundTrip: roundTrip, responseTime: responseTime, phases: phases, certificateEnd: certificateEnd, isInitial: true)
    }

    /// Returns the update with the times and the certificate of a later probe.
    package func with(
        roundTrip: Duration?, responseTime: Duration?, phases: PhaseTimes, certificateEnd: Int64?, isInitial: Bool
    ) -> ServerUpdate {
        ServerUpdate(
            endpoint: endpoint, statusName: statusName, cause: cause, pending: pending, failingSince: failingSince,
            since: statusMoment,
            address: address, interface: interface, roundTrip: roundTrip, responseTime: responseTime,
            phases: phases, certificateEnd: certificateEnd, addresses: addresses, isFlapping: isFlapping, isPaused: isPaused,
            job: job,
            isInitial: isInitial, moment: moment)
    }
}

extension ServerUpdate: CustomStringConvertible {
    /// The server and its status, such as `api.example.com:443 up` or `api.example.com:443 down (tcp: …)`.
    public var description: String { "\(endpoint) \(statusName.rawValue)" + (cause.map { " (\($0))" } ?? "") }
}
