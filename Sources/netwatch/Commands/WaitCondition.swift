import Console
import FoundationEssentials
import Reachability
import Records

/// The condition of `wait`: whether it holds, and has held for long enough.
struct WaitCondition: Watcher.Condition {
    private let endpoints: [Endpoint]
    private let needsAll: Bool
    private let rule: FailureRule
    private let stable: Duration
    private let timeLimit: Moment?
    private var path: PathUpdate?
    private var targets: [TargetID: ServerUpdate] = [:]
    // Counted, because each event of many targets asks whether the condition holds.
    private var upCount = 0
    /// The causes of targets whose latest probe failed. A status of down needs more than one failure.
    private var failures: [TargetID: Cause] = [:]
    /// The targets of which a probe has ended.
    private var probed: Set<TargetID> = []
    private var holdsSince: Moment?

    /// - Parameters:
    ///   - endpoints: The targets that must be up; if empty, the path must be satisfied.
    ///   - needsAll: Whether all of them must be up, or only one.
    ///   - rule: The rule by which a degraded target is not up.
    ///   - stable: The time for which the condition must hold without a break.
    ///   - timeLimit: The time at which waiting ends; `nil` for never.
    init(
        endpoints: [Endpoint], needsAll: Bool = true, rule: FailureRule = FailureRule(), stable: Duration = .zero,
        timeLimit: Moment? = nil
    ) {
        self.rule = rule
        self.endpoints = endpoints
        self.needsAll = needsAll
        self.stable = stable
        self.timeLimit = timeLimit
    }

    mutating func receive(_ event: MonitorEvent) {
        switch event {
        case .path(let update): path = update
        case .server(let id, let update):
            guard endpoints.indices.contains(id.number) else { return }
            let former = targets.updateValue(update, forKey: id)
            upCount += (isUp(update) ? 1 : 0) - (former.map(isUp) == true ? 1 : 0)
        // Whether the condition held while the machine was suspended is unknown.
        case .gap(_, let to): if holdsSince != nil { holdsSince = to }
        case .probe(let id, let report):
            failures[id] = report.cause
            probed.insert(id)
            return
        case .incident, .resync, .ended: return
        }
        holdsSince = holds ? holdsSince ?? event.moment : nil
    }

    private var holds: Bool {
        guard !endpoints.isEmpty else { return path?.path.status == .satisfied }
        return needsAll ? upCount == endpoints.count : upCount > 0
    }

    private func isUp(_ update: ServerUpdate) -> Bool { rule.verdict(update) == .holds }

    /// Returns whether the condition has held for the requested time.
    func isFulfilled(at now: Moment) -> Bool {
        holdsSince.map { now >= $0.advanced(by: stable) } ?? false
    }

    func isDone(at now: Moment) -> Bool {
        isFulfilled(at: now) || timeLimit.map { now >= $0 } ?? false
    }

    func deadline(at now: Moment) -> Moment? {
        [timeLimit, holdsSince?.advanced(by: stable)].compactMap { $0 }.min()
    }

    /// What is waited for at present, in one line.
    func present(at now: Moment) -> String {
        guard let holdsSince else { return reason }
        let subject =
            switch endpoints.count {
            case 0: "the path is satisfied"
            case 1: "\(endpoints[0].sentence) is up"
            default: needsAll ? "all targets are up" : "a target is up"
            }
        return "\(subject) for \(TimeSpan.rough(now.elapsed(since: holdsSince))) of \(TimeSpan.rough(stable))"
    }

    /// The reason why the condition does not hold, or not for long enough, in one line.
    var reason: String {
        if holdsSince != nil { return "it did not hold for \(TimeSpan.rough(stable)) without a break" }
        guard !endpoints.isEmpty else {
            return path.map { "path unsatisfied, \($0.path.sentence)" } ?? "the path is not known yet"
        }
        var isUnexplained = false
        let open = endpoints.enumerated().compactMap { number, endpoint -> String? in
            let update = targets[TargetID(number)]
            let state = update?.statusName ?? .unknown
            if let update, isUp(update) { return nil }
            if let cause = update?.cause { return "\(endpoint.sentence) is \(state.rawValue), \(cause.sentence)" }
            if let cause = failures[TargetID(number)] { return "\(endpoint.sentence): \(cause.sentence)" }
            if !isBeforePath(endpoint) { isUnexplained = true }
            let reason = state == .unknown && !probed.contains(TargetID(number)) ? ": no probe has ended" : ""
            return "\(endpoint.sentence) is \(state.rawValue)\(reason)"
        }
        var parts = Array(open.prefix(3))
        if open.count > 3 { parts.append("and \(open.count - 3) more") }
        // If no probe found a cause, the path may have one.
        if isUnexplained, let cause = path?.path.cause { parts.append("path unsatisfied, \(cause.sentence)") }
        return parts.joined(separator: "; ")
    }

    /// Whether an endpoint needs no path: it is this machine, or on the link of an interface that has an address.
    private func isBeforePath(_ endpoint: Endpoint) -> Bool {
        switch endpoint.host {
        // RFC 6761 section 6.3.
        case .name(let name): return name == "localhost" || name.hasSuffix(".localhost")
        case .address(let address, _):
            if address.isLoopback { return true }
            let interfaces = path?.path.interfaces.filter { $0.level >= .degraded } ?? []
            return interfaces.contains { $0.addresses.contains { $0.contains(address) } }
        }
    }
}
