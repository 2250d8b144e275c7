import FoundationEssentials
import Reachability
import Records

/// A collector of one status document: the settled path, and the result of each target's first probe.
struct StatusCollection: Watcher.Condition {
    /// The time limit for the kernel's first complete answers.
    static let settleLimit = Duration.seconds(30)
    /// The additional time after a probe's deadline within which the target's status must arrive.
    static let verdictMargin = Duration.seconds(2)
    /// The time after the last probe within which the resulting status must arrive. It comes in the same turn; a busy machine may delay this
    /// program between the two.
    static let afterProbe = Duration.seconds(2)

    /// The most times of the probe's time that a probe over a slow path takes, with a wait before it.
    private static let longestProbe = 4

    private let probeTimeout: Duration
    private var path: PathUpdate?
    // The targets, then the canary.
    private let endpoints: [Endpoint]
    private let hasCanary: Bool
    private var updates: [ServerUpdate?]
    private var isProbed: [Bool]
    // Counted, because a status may have 100,000 targets, and each event asks whether it is complete.
    private var undecided: Int
    private var unprobed: Int
    private var lastProbe: Moment?
    /// Whether a target's next probe examines its failure in another way, and may take longer.
    private var mustWaitLonger = false
    private var lastLookup: LookupResult?
    private let start: Moment

    /// Creates the collector of these targets, whose numbers begin with 0. The canary has the number after them.
    init(endpoints: [Endpoint], canary: Endpoint? = nil, start: Moment, probeTimeout: Duration) {
        let endpoints = endpoints + [canary].compactMap { $0 }
        hasCanary = canary != nil
        self.endpoints = endpoints
        self.start = start
        self.probeTimeout = probeTimeout
        updates = Array(repeating: nil, count: endpoints.count)
        isProbed = Array(repeating: false, count: endpoints.count)
        (undecided, unprobed) = (endpoints.count, endpoints.count)
    }

    mutating func receive(_ event: MonitorEvent) {
        switch event {
        case .path(let update): path = update
        case .server(let id, let update):
            guard endpoints.indices.contains(id.number) else { return }
            if isDecided(id.number) { undecided += 1 }
            updates[id.number] = update
            if isDecided(id.number) { undecided -= 1 }
        case .probe(let id, let report):
            guard endpoints.indices.contains(id.number) else { return }
            lastLookup = LookupResult(report) ?? lastLookup
            guard !isProbed[id.number] else { return }
            guard !report.isProvisional else {
                mustWaitLonger = true
                lastProbe = max(lastProbe ?? report.moment, report.moment)
                return
            }
            isProbed[id.number] = true
            unprobed -= 1
            lastProbe = max(lastProbe ?? report.moment, report.moment)
        case .incident, .resync, .gap, .ended: break
        }
    }

    private func isDecided(_ number: Int) -> Bool { updates[number].map { $0.statusName != .unknown } ?? false }

    func isDone(at now: Moment) -> Bool {
        guard path != nil else { return now >= start.advanced(by: Self.settleLimit) }
        return undecided == 0 || now >= targetDeadline
    }

    /// The time of the next check if no event arrives.
    func deadline(at now: Moment) -> Moment? {
        path == nil ? start.advanced(by: Self.settleLimit) : targetDeadline
    }

    private var targetDeadline: Moment {
        // The limit holds from the last result on: many targets are probed one after the other.
        let begin = max(path?.moment ?? start, start)
        let probeTimeout = mustWaitLonger ? probeTimeout * Self.longestProbe : probeTimeout
        let latest = max(begin, lastProbe ?? begin).advanced(by: probeTimeout).advanced(by: Self.verdictMargin)
        guard unprobed == 0, let lastProbe else { return latest }
        return min(latest, lastProbe.advanced(by: Self.afterProbe))
    }

    /// Returns the document; `nil` if the path never settled. A target without an update counts as unknown.
    func document(at now: Moment, _ rule: FailureRule = FailureRule()) -> StatusDocument? {
        guard let path else { return nil }
        var updates = endpoints.enumerated().map { number, endpoint in
            self.updates[number] ?? .unknown(endpoint, since: start, at: now)
        }
        let canary = hasCanary ? updates.popLast() : nil
        return StatusDocument(moment: now, path: path, targets: updates, canary: canary, lookup: lastLookup, rule: rule)
    }
}

extension ServerUpdate {
    /// Returns the update of a server for which no other one has arrived.
    static func unknown(_ endpoint: Endpoint, since start: Moment, at now: Moment) -> Self {
        Self(
            endpoint: endpoint, statusName: .unknown, cause: nil, since: start, address: nil, interface: nil, roundTrip: nil,
            isInitial: true, moment: now)
    }
}
