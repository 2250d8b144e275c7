import FoundationEssentials
import Reachability
import Records

/// A collector of the results of a number of probes of each target.
struct ProbeCollection {
    /// The time limit for the kernel's first complete answers.
    static let settleLimit = StatusCollection.settleLimit
    /// The additional time after a probe's deadline within which its result must arrive.
    static let margin = Duration.seconds(2)

    /// The number of probes of each target; 0 for endless.
    let count: Int
    private(set) var statistics: [ProbeStatistics]
    private let limit: Duration
    private let start: Moment
    // Counted, because each event of many targets asks whether all are complete.
    private var open: Int
    private var isOpen: [Bool]
    private var lastProgress: Moment?

    init(endpoints: [Endpoint], count: Int, settings: ProbeSettings, start: Moment) {
        self.count = count
        self.start = start
        limit = settings.interval + settings.timeout + Self.margin
        statistics = endpoints.map { ProbeStatistics($0) }
        open = endpoints.count
        isOpen = Array(repeating: true, count: endpoints.count)
    }

    /// The result of an event.
    enum Outcome: Hashable {
        case nothing
        /// A probe ended: its report with its number, from 1, and whether it was the target's last one.
        case probe(ProbeReport, number: Int, isLast: Bool)
        /// The target will never be probed.
        case excluded
    }

    /// Counts an event. Reports beyond the requested number are ignored.
    mutating func receive(_ event: MonitorEvent) -> Outcome {
        switch event {
        case .path(let update): lastProgress = lastProgress ?? update.moment
        case .probe(let id, let report):
            guard isOpen.indices.contains(id.number), isOpen[id.number] else { return .nothing }
            lastProgress = report.moment
            statistics[id.number].add(report)
            let number = statistics[id.number].sent
            if number == count { close(id.number) }
            return .probe(report, number: number, isLast: number == count)
        case .server(let id, let update):
            // No probe follows if the user's options exclude the address's family, or if it is 0.0.0.0 or ::.
            guard isOpen.indices.contains(id.number), isOpen[id.number], statistics[id.number].sent == 0,
                case .address = update.endpoint.host, let code = update.cause?.code,
                code == .noAddressForFamily || code == .unusableAddress
            else { return .nothing }
            statistics[id.number].cause = update.cause
            close(id.number)
            return .excluded
        default: break
        }
        return .nothing
    }

    private mutating func close(_ number: Int) {
        isOpen[number] = false
        open -= 1
    }

    func isDone(at now: Moment) -> Bool { open == 0 || now >= deadline }

    /// The time at which the collection ends without a further result.
    var deadline: Moment { lastProgress?.advanced(by: limit) ?? start.advanced(by: Self.settleLimit) }
}
