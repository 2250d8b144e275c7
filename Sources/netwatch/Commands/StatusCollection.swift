import FoundationEssentials
import Reachability

/// Gathers one status document: the settled path, and of each target what its first probe says.
struct StatusCollection: Watcher.Condition {
    /// How long the first complete answers of the kernel may take.
    static let settleLimit = Duration.seconds(30)
    /// How much longer than one probe the verdict on it may take.
    static let verdictMargin = Duration.seconds(2)
    /// How long after a probe's result the status that follows from it is waited for.
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

    mutating func see(_ event: MonitorEvent) {
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

    /// When to look again although nothing happened.
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

    /// The document; `nil` where the path never settled. A target that nothing was heard of counts as unknown.
    func document(at now: Moment) -> StatusDocument? {
        guard let path else { return nil }
        let updates = endpoints.enumerated().map { number, endpoint in
            // The document holds one record of each target: its first.
            targets[TargetID(number)]?.asInitial()
                ?? ServerUpdate(
                    endpoint: endpoint, state: .unknown, cause: nil, since: start, address: nil, interface: nil, roundTrip: nil,
                    isInitial: true, moment: now
                )
        }
        return StatusDocument(moment: now, path: path, targets: updates)
    }
}
