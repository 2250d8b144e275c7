import FoundationEssentials
import Reachability

/// The history of one target for its page, from a reader of the history.
struct TargetHistory {
    /// The maximum number of samples that are read for a page. A target with more has its round trips by hours.
    private static let sampleLimit = 20_000
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
        detail.outages = try outages(reader, span)
        detail.gaps = try reader.gaps(interval, limit: TargetDetail.entryLimit).reversed()
        detail.pathEvents = try reader.pathEvents(interval, limit: TargetDetail.entryLimit).reversed().compactMap(Self.event)
        guard let number = try reader.targets().first(where: { $0.key == target.key })?.number else { return detail }
        let samples = try reader.samples(of: number, Self.clamped(interval, to: 86_400_000), limit: Self.sampleLimit)
        detail.changes = Self.changes(samples.elements)
        detail.roundTrips = try roundTrips(reader, number, span)
        return detail
    }

    /// Returns the end of a period, if it is longer than a limit.
    private static func clamped(_ period: Range<Int64>, to limit: Int64) -> Range<Int64> {
        max(period.lowerBound, period.upperBound - limit)..<period.upperBound
    }

    private func roundTrips(_ reader: HistoryReader, _ number: Int, _ span: Range<Int64>) throws -> [RoundTripPoint] {
        switch query.span {
        case .day:
            let samples = try reader.samples(of: number, span, limit: Self.sampleLimit)
            guard samples.next == nil else { return try reader.summaries(.hour, of: number, span).map { RoundTripPoint($0) } }
            return Self.points(samples.elements)
        case .week: return try reader.summaries(.hour, of: number, span).map { RoundTripPoint($0) }
        case .quarter: return try reader.summaries(.day, of: number, span).map { RoundTripPoint($0) }
        }
    }

    /// Returns the round trips of each quarter of an hour.
    static func points(_ samples: [Sample]) -> [RoundTripPoint] {
        var summaries: [PeriodSummary] = []
        for sample in samples {
            let start = sample.time - sample.time.quotientAndRemainder(dividingBy: quarterHour).remainder
            if summaries.last?.period.lowerBound != start { summaries.append(PeriodSummary(start..<start + quarterHour)) }
            summaries[summaries.count - 1].add(sample)
        }
        return summaries.map { RoundTripPoint($0) }
    }

    /// Returns the changes of the state, the newest first.
    static func changes(_ samples: [Sample]) -> [TargetDetail.StateChange] {
        var changes: [TargetDetail.StateChange] = []
        var state: RecordedState?
        for sample in samples where sample.state != state {
            if state != nil { changes.append(.init(time: sample.time, state: sample.state, cause: nil)) }
            state = sample.state
        }
        return Array(changes.suffix(TargetDetail.entryLimit).reversed())
    }

    /// Returns the incidents of the target, those of the board first: the history may not have them yet.
    private func outages(_ reader: HistoryReader, _ span: Range<Int64>) throws -> [TargetDetail.Outage] {
        let text = target.update.endpoint.text
        let shown = board.incidents.filter { $0.incident.targets.contains { $0.text == text } }
        let known = Set(shown.map(\.incident.id))
        let recorded = try reader.incidents(span, of: text, limit: TargetDetail.outageLimit).elements
        let all = shown + recorded.filter { !known.contains($0.id) }.map { BoardIncident(incident: $0, isRecorded: true) }
        return all.map { TargetDetail.Outage($0) }.sorted { $0.start > $1.start }.prefix(TargetDetail.outageLimit).map { $0 }
    }

    /// The keys of a recorded `path` that the page shows.
    private struct RecordedPath: Decodable {
        struct RecordedCause: Decodable {
            var layer: String
            var code: String
            var detail: String
        }

        var status: String
        var interface: String?
        var reasons: [String]
        var cause: RecordedCause?
    }

    private static func event(_ event: HistoryReader.PathEvent) -> TargetDetail.PathEvent? {
        guard let path = try? JSONDecoder().decode(RecordedPath.self, from: Data(event.record.utf8)) else { return nil }
        let cause = path.cause.map {
            Cause(Cause.Layer(rawValue: $0.layer), Cause.Code(rawValue: $0.code), detail: $0.detail)
        }
        return TargetDetail.PathEvent(
            time: event.time, isSatisfied: path.status == "satisfied", interface: path.interface, reasons: path.reasons,
            cause: cause)
    }
}

extension TargetDetail.Outage {
    fileprivate init(_ incident: BoardIncident) {
        let value = incident.incident
        let state: RecordedState =
            if value.cause.layer == .quality { .degraded } else if value.scope == .server { .down } else { .unreachable }
        self.init(
            start: value.began.milliseconds, end: value.ended?.milliseconds, state: state, cause: value.cause,
            incident: value.id, isRecorded: incident.isRecorded)
    }
}
