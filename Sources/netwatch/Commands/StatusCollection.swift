import FoundationEssentials
import Reachability

/// A collector of one status document: the settled path, and the result of each target's first probe.
struct StatusCollection: Watcher.Condition {
    /// The time limit for the kernel's first complete answers.
    static let settleLimit = Duration.seconds(30)
    /// The additional time after a probe's deadline within which the target's status must arrive.
    static let verdictMargin = Duration.seconds(2)
    /// The time after a probe's result within which the resulting status must arrive.
    static let afterProbe = Duration.milliseconds(250)

    private let probeTimeout: Duration
    private var path: PathUpdate?
    private var targets: [TargetID: ServerUpdate] = [:]
    private var probed: [TargetID: Moment] = [:]
    private let endpoints: [Endpoint]
    private let start: Moment

    init(endpoints: [Endpoint], start: Moment, probeTimeout: Duration) {
        self.endpoints = endpoints
        self.start = start
        self.probeTimeout = probeTimeout
    }

    mutating func receive(_ event: MonitorEvent) {
        switch event {
        case .path(let update): path = update
        case .server(let id, let update): targets[id] = update
        case .probe(let id, let report): if probed[id] == nil { probed[id] = report.moment }
        case .resync, .gap, .ended: break
        }
    }

    func isDone(at now: Moment) -> Bool {
        guard path != nil else { return now >= start.advanced(by: Self.settleLimit) }
        return isComplete || now >= targetDeadline
    }

    /// The time of the next check if no event arrives.
    func deadline(at now: Moment) -> Moment? {
        path == nil ? start.advanced(by: Self.settleLimit) : targetDeadline
    }

    private var isComplete: Bool {
        targets.count == endpoints.count && targets.values.allSatisfy { $0.state != .unknown }
    }

    private var targetDeadline: Moment {
        let latest = max(path?.moment ?? start, start).advanced(by: probeTimeout).advanced(by: Self.verdictMargin)
        let undecided = targets.filter { $0.value.state == .unknown }.keys
        guard targets.count == endpoints.count, undecided.allSatisfy({ probed[$0] != nil }) else { return latest }
        let results = undecided.compactMap { probed[$0]?.advanced(by: Self.afterProbe) }
        return min(latest, results.max() ?? latest)
    }

    /// Returns the document; `nil` if the path never settled. A target without an update counts as unknown.
    func document(at now: Moment) -> StatusDocument? {
        guard let path else { return nil }
        let updates = endpoints.enumerated().map { number, endpoint in
            // The document has one record for each target: its first.
            targets[TargetID(number)]?.asInitial()
                ?? ServerUpdate(
                    endpoint: endpoint, state: .unknown, cause: nil, since: start, address: nil, interface: nil, roundTrip: nil,
                    isInitial: true, moment: now
                )
        }
        return StatusDocument(moment: now, path: path, targets: updates)
    }
}
