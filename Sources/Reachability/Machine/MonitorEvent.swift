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
