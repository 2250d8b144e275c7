import Reachability

/// A collector of the verdict of one target, with the probe that decided it; without a target, of the settled path.
struct WhyCollection: Watcher.Condition {
    /// The additional time after the deadlines of two probes within which the verdict must arrive. A silent target's second probe
    /// starts up to 3.1 s after the first.
    static let margin = Duration.milliseconds(5100)
    /// The time after a target's first answer within which the failures of its other addresses are part of the verdict.
    static let addressGrace = Duration.milliseconds(500)

    private let endpoint: Endpoint?
    private let limit: Duration
    private let start: Moment
    private(set) var path: NetworkPath?
    private(set) var update: ServerUpdate?
    private var reports: [ProbeReport] = []
    private var pathMoment: Moment?
    /// Whether collecting pauses after a first probe without an answer, so that a sweep runs beside the second probe.
    private(set) var isPaused = false
    private var hasPaused = false

    init(endpoint: Endpoint?, probeTimeout: Duration, start: Moment) {
        self.endpoint = endpoint
        self.start = start
        limit = probeTimeout + probeTimeout + Self.margin
    }

    mutating func receive(_ event: MonitorEvent) {
        switch event {
        case .path(let update):
            path = update.path
            pathMoment = pathMoment ?? update.moment
        case .server(_, let update): self.update = update
        case .probe(_, let report):
            reports.append(report)
            if !hasPaused, report.isSilence { (isPaused, hasPaused) = (true, true) }
        default: break
        }
    }

    /// Continues after a pause.
    mutating func resume() { isPaused = false }

    func isDone(at now: Moment) -> Bool {
        isPaused || (path != nil && (endpoint == nil || isDecided && now >= graceEnd)) || now >= end
    }

    func deadline(at now: Moment) -> Moment? { isDecided ? min(end, graceEnd) : end }

    /// The time up to which a target that is up may still be degraded by its other addresses.
    private var graceEnd: Moment {
        guard let update, update.state == .up, reports.last?.lookup?.addresses.count ?? 0 > 1 else { return start }
        return update.moment.advanced(by: Self.addressGrace)
    }

    private var isDecided: Bool { update.map { $0.state != .unknown } ?? false }
    private var end: Moment { pathMoment?.advanced(by: limit) ?? start.advanced(by: StatusCollection.settleLimit) }

    /// The evidence so far, without the kernel's answers; `nil` before the path is settled.
    var evidence: DiagnosisEvidence? {
        guard let path else { return nil }
        return DiagnosisEvidence(endpoint: endpoint, path: path, update: update, report: decidingReport)
    }

    /// The last probe that had the verdict's result, or the last one.
    private var decidingReport: ProbeReport? {
        let isDeciding = { (report: ProbeReport) in
            update?.cause.map { $0.isSameFailure(as: report.cause) } ?? (report.cause == nil)
        }
        return isDecided && update?.state != .degraded ? reports.last(where: isDeciding) ?? reports.last : reports.last
    }
}

extension ProbeReport {
    /// Whether nothing answered the probe.
    fileprivate var isSilence: Bool { cause?.layer == .tcp && cause?.code == .timeout }
}
