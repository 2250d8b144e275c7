import Reachability

/// The last probe of each target, for its page.
///
/// A report with the facts of a certificate has several kilobytes, so only ``limit`` targets keep theirs: those whose pages were asked
/// for last, and others while there is room. A further target has the times of its last probe if that succeeded, and its complete report
/// from the first probe on that follows the question.
struct LastProbes: Sendable {
    /// The maximum number of complete reports.
    static let limit = 256

    private struct Complete: Sendable {
        var report: ProbeReport?
        /// The number of the last question; 0 if there was none.
        var question = 0
    }

    private var times: [TargetID: ProbeTimes] = [:]
    /// The targets whose last probe failed. It has no times.
    private var failed: Set<TargetID> = []
    private var complete: [TargetID: Complete] = [:]
    private var lastQuestion = 0

    /// Keeps the report of a target's probe.
    mutating func add(_ report: ProbeReport, of id: TargetID) {
        if let place = complete.index(forKey: id) {
            complete.values[place].report = report
        } else if complete.count < Self.limit {
            complete[id] = Complete(report: report)
        }
        times[id] = ProbeTimes(report)
        if report.succeeded { failed.remove(id) } else { failed.insert(id) }
    }

    /// Forgets a target that is no longer monitored.
    mutating func remove(_ id: TargetID) {
        times[id] = nil
        failed.remove(id)
        complete[id] = nil
    }

    /// Whether the complete report of a target's last probe is kept.
    func isComplete(_ id: TargetID) -> Bool { complete[id]?.report != nil }

    /// Returns the last probe of a target; without the facts of its answers if the report was not kept, and `nil` if nothing is known.
    mutating func report(of id: TargetID, _ endpoint: Endpoint) -> ProbeReport? {
        guard times[id] != nil || complete[id] != nil || failed.contains(id) else { return nil }
        if complete[id] == nil {
            if complete.count >= Self.limit, let oldest = complete.min(by: { $0.value.question < $1.value.question }) {
                complete[oldest.key] = nil
            }
            complete[id] = Complete()
        }
        lastQuestion += 1
        complete[id]?.question = lastQuestion
        return complete[id]?.report ?? times[id]?.report(of: endpoint)
    }
}

/// The times of a successful probe: 24 bytes.
struct ProbeTimes: Hashable, Sendable {
    /// The end of the probe, in seconds since 1970.
    private var seconds: UInt32
    // In microseconds; `.max` for a time that was not measured.
    private var resolution: UInt32
    // That of all connections.
    private var connection: UInt32
    private var handshake: UInt32
    private var processing: UInt32
    private var transfer: UInt32

    /// Creates the times of a report; `nil` if the probe failed.
    init?(_ report: ProbeReport) {
        guard report.succeeded else { return nil }
        func microseconds(_ duration: Duration?) -> UInt32 {
            duration.map { UInt32(clamping: min(Int64($0.milliseconds * 1_000), Int64(UInt32.max) - 1)) } ?? .max
        }
        seconds = UInt32(clamping: report.moment.milliseconds / 1_000)
        resolution = microseconds(report.resolution)
        connection = microseconds(report.connect)
        handshake = microseconds(report.levels?.handshake)
        (processing, transfer) = (microseconds(report.levels?.processing), microseconds(report.levels?.transfer))
    }

    /// Returns a report with the times and without further facts.
    func report(of endpoint: Endpoint) -> ProbeReport {
        func duration(_ microseconds: UInt32) -> Duration? {
            microseconds == .max ? nil : .microseconds(Int64(microseconds))
        }
        var report = ProbeReport(
            endpoint: endpoint, resolution: duration(resolution), connection: duration(connection),
            moment: Moment(monotonicNanoseconds: 0, wallClockNanoseconds: Int64(seconds) * 1_000_000_000))
        guard handshake != .max || processing != .max else { return report }
        var levels = LevelResult()
        func nanoseconds(_ microseconds: UInt32) -> Int64? { microseconds == .max ? nil : Int64(microseconds) * 1_000 }
        levels.handshakeNanoseconds = nanoseconds(handshake)
        levels.processingNanoseconds = nanoseconds(processing)
        levels.transferNanoseconds = nanoseconds(transfer)
        report.levels = levels
        return report
    }
}
