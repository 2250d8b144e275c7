/// The events that a monitor emits, in order. Records are made only from these events.
package enum MonitorEvent: Hashable, Sendable {
    /// A path update. The first one is settled and initial; the others are changes.
    case path(PathUpdate)
    /// A server update. The first one of each target is initial, with the state `unknown`; the others are changes.
    case server(TargetID, ServerUpdate)
    /// The outcome of one probe.
    case probe(TargetID, ProbeReport)
    /// An incident opened, has grown, or is over. It follows the updates of its servers.
    case incident(Incident)
    /// All tables of the kernel were dumped again.
    case resync(ResyncReason, Moment)
    /// The monitor observed nothing between `from` and `to`.
    case gap(from: Moment, to: Moment)
    /// The monitor cannot observe events any more, because its namespace was removed. No event follows.
    case ended(Moment)

    /// The time at which the causing input was read.
    package var moment: Moment {
        switch self {
        case .path(let update): update.moment
        case .server(_, let update): update.moment
        case .probe(_, let report): report.moment
        case .incident(let incident): incident.moment
        case .resync(_, let moment), .gap(_, let moment), .ended(let moment): moment
        }
    }
}
