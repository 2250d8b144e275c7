import FoundationEssentials
import Reachability
import Records

/// The history of one target for its page, from a reader of the history.
struct TargetHistory {
    /// The samples that are read at a time, and how many times. A target with more has its round trips by hours.
    private static let pageSize = 20_000
    private static let pages = 10
    /// The maximum number of incidents that explain the changes of a day.
    private static let incidentLimit = 1_000
    private static let day: Int64 = 86_400_000
    private static let quarterHour: Int64 = 900_000

    let target: BoardTarget
    let board: Board
    let query: TargetQuery

    /// The time of the bar's span in milliseconds since 1970.
    private var span: Range<Int64> {
        let cells = board.cells[query.span]
        guard let first = cells.first, let last = cells.last else { return 0..<1 }
        return first.lowerBound..<last.upperBound
    }

    /// Reads the history.
    func detail(_ reader: HistoryReader) throws -> TargetDetail {
        var detail = TargetDetail()
        let span = span
        let interval = query.interval ?? span
        detail.gaps = try reader.gaps(interval, limit: TargetDetail.entryLimit).reversed()
        detail.pathEvents = try reader.pathEvents(interval, limit: TargetDetail.entryLimit).reversed().compactMap {
            .init(time: $0.time, record: $0.record)
        }
        guard let number = try reader.number(ofTarget: target.key) else { return detail }
        let recent = max(interval.lowerBound, interval.upperBound - Self.day)..<interval.upperBound
        let samples = try self.samples(reader, number, recent)
        let known = try incidents(reader, number, recent, limit: Self.incidentLimit)
        let causes = ChangeCauses(update: target.update, incidents: known.elements.map(\.incident), areAll: known.areAll)
        var states: [String: RecordedState] = [:]
        detail.changes = Self.changes(samples.elements).map { change in
            if let incident = causes.incident(of: change) { states[incident.id] = change.state }
            return TargetDetail.StateChange(time: change.time, state: change.state, cause: causes.cause(of: change))
        }
        // The other incident has the time of one that was merged with it.
        let shown = try incidents(reader, number, span, limit: TargetDetail.outageLimit).elements.filter {
            $0.incident.state != .merged
        }
        detail.outages = shown.map { TargetDetail.Outage($0, causes, states[$0.incident.id]) }
        let summaries = try summaries(reader, number, span, known: recent == span ? samples : nil)
        detail.roundTrips = summaries.map { TimePoint(roundTripsOf: $0) }
        if target.update.endpoint.hasOwnResponseTime {
            detail.responseTimes = summaries.compactMap { TimePoint(responseTimesOf: $0) }
        }
        return detail
    }

    /// Returns the results and the changes of a time, and whether these are all.
    private func samples(
        _ reader: HistoryReader, _ number: Int, _ time: Range<Int64>
    ) throws -> (elements: [Sample], areAll: Bool) {
        var page = try reader.samples(of: number, time, limit: Self.pageSize, hasChanges: true)
        var elements = page.elements
        for _ in 1..<Self.pages {
            guard let next = page.next else { break }
            page = try reader.samples(of: number, time, limit: Self.pageSize, after: next, hasChanges: true)
            elements += page.elements
        }
        return (elements, page.next == nil)
    }

    /// Returns the summaries of the parts of the span. - Parameter known: the samples of the span, if they were read already.
    private func summaries(
        _ reader: HistoryReader, _ number: Int, _ span: Range<Int64>, known: (elements: [Sample], areAll: Bool)?
    ) throws -> [PeriodSummary] {
        if query.span == .day {
            let samples = try known ?? samples(reader, number, span)
            if samples.areAll { return Self.summaries(samples.elements) }
        }
        return try reader.summaries(query.span == .quarter ? .day : .hour, of: number, span)
    }

    /// Returns the summary of each quarter of an hour.
    static func summaries(_ samples: [Sample]) -> [PeriodSummary] {
        var summaries: [PeriodSummary] = []
        for sample in samples where sample.isResult {
            let start = sample.time - sample.time.quotientAndRemainder(dividingBy: quarterHour).remainder
            if summaries.last?.period.lowerBound != start { summaries.append(PeriodSummary(start..<start + quarterHour)) }
            summaries[summaries.count - 1].add(sample)
        }
        return summaries
    }

    /// Returns the changes of the state without their causes, the newest first. The timeline has the times without a state as gaps. The first
    /// state of a target that is new in this time is one of them.
    static func changes(_ samples: [Sample]) -> [TargetDetail.StateChange] {
        var changes: [TargetDetail.StateChange] = []
        var state: RecordedState?
        let isNew = samples.first?.state == .unknown
        for sample in samples where sample.state != state && sample.state != .unknown && sample.state != .notRecorded {
            if state != nil || isNew { changes.append(.init(time: sample.time, state: sample.state, cause: nil)) }
            state = sample.state
        }
        return Array(changes.suffix(TargetDetail.entryLimit).reversed())
    }

    /// Returns the incidents of the target, the newest first, and whether these are all. The history may not have those of the board yet.
    private func incidents(
        _ reader: HistoryReader, _ number: Int, _ time: Range<Int64>, limit: Int
    ) throws -> (elements: [BoardIncident], areAll: Bool) {
        let recorded = try reader.incidents(time, of: number, limit: limit)
        let all = board.incidents.filter { $0.affects(number, in: time) }.joined(with: recorded.elements)
        return (Array(all.prefix(limit)), recorded.next == nil)
    }
}

extension TargetDetail.Outage {
    /// Creates the outage of an incident. - Parameter state: the state of the target in it; `nil` for the usual one of its cause.
    fileprivate init(_ incident: BoardIncident, _ causes: ChangeCauses, _ state: RecordedState?) {
        let value = incident.incident
        let isDegradation = value.scope == .server && (value.cause.layer == .quality || value.cause.code == .certificateExpiring)
        let usual: RecordedState = isDegradation ? .degraded : value.scope == .server ? .down : .unreachable
        self.init(
            start: value.began.milliseconds, end: value.ended?.milliseconds, state: state ?? usual,
            cause: causes.cause(of: value), incident: value.id, isRecorded: incident.isRecorded)
    }
}
