/// A target's place among those of one monitor.
package struct TargetID: Hashable, Sendable, Comparable {
    package let number: Int
    package init(_ number: Int) { self.number = number }
    package static func < (left: TargetID, right: TargetID) -> Bool { left.number < right.number }
}

/// What the monitor says, in order. Records are made of these, and nothing else.
package enum MonitorEvent: Hashable, Sendable {
    /// The first is settled and initial; the others are changes.
    case path(PathUpdate)
    /// The first of each target is initial (state unknown); the others are changes.
    case server(TargetID, ServerUpdate)
    /// One probe's outcome.
    case probe(TargetID, ProbeReport)
    /// The kernel was asked anew for everything.
    case resync(ResyncReason, Moment)
    /// Nothing was seen from `from` to `to`.
    case gap(from: Moment, to: Moment)
    /// The monitor cannot see events any more (its namespace is gone); nothing follows.
    case ended(Moment)

    /// When the input that caused it was read.
    package var moment: Moment {
        switch self {
        case .path(let update): update.moment
        case .server(_, let update): update.moment
        case .probe(_, let report): report.moment
        case .resync(_, let moment), .gap(_, let moment), .ended(let moment): moment
        }
    }
}

/// Why the kernel was asked anew; the raw values are the contract's.
package enum ResyncReason: String, Hashable, Sendable, CaseIterable {
    case overrun
    case dumpInterrupted = "dump_interrupted"
    case resume
}

/// One probe's outcome.
package struct ProbeReport: Hashable, Sendable {
    package var endpoint: Endpoint
    /// The round trip of the handshake; `nil` when it failed.
    package var roundTrip: Duration?
    /// The address that answered, or was tried last.
    package var address: IPAddress?
    /// How long the name took to resolve; `nil` for addresses.
    package var resolution: Duration?
    /// How long connecting took, from the first attempt; `nil` when none was made.
    package var connection: Duration?
    /// Why it failed.
    package var cause: Cause?
    package var moment: Moment

    package init(
        endpoint: Endpoint, roundTrip: Duration? = nil, address: IPAddress? = nil, resolution: Duration? = nil,
        connection: Duration? = nil, cause: Cause? = nil, moment: Moment
    ) {
        self.endpoint = endpoint
        self.roundTrip = roundTrip
        self.address = address
        self.resolution = resolution
        self.connection = connection
        self.cause = cause
        self.moment = moment
    }

    package var succeeded: Bool { cause == nil }
}
