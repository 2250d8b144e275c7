import FoundationEssentials
import Reachability

/// The history of one target, which the store reads for its page, and its last probe.
struct TargetDetail: Sendable {
    /// The maximum numbers of outages, and of the entries of each kind in the timeline.
    static let outageLimit = 100
    static let entryLimit = 200

    /// The round trips of the span, the oldest first: at most 24 hours in quarters of an hour, 7 days in hours, or 90 days in days.
    var roundTrips: [TimePoint] = []
    /// The response times of the same parts of the span.
    var responseTimes: [TimePoint] = []
    /// The outages, the newest first. An outage that is not over has no end.
    var outages: [Outage] = []
    /// The changes of the state in the interval of the query, or in the span, the newest first.
    var changes: [StateChange] = []
    /// The changes of the path in the same time, the newest first.
    var pathEvents: [PathEvent] = []
    /// The times without a history in the same time, the newest first.
    var gaps: [HistoryGap] = []
    /// The last probe; `nil` if it is not known. The layers then show less evidence.
    var report: ProbeReport?
    /// The kernel's present route to the target; `nil` if it is not known.
    var inspection: RouteInspection?
    /// Whether the store answered within its limit. Otherwise the history is not complete.
    var isComplete = true

    init() {}

    /// A time in which the target was down, unreachable or degraded.
    struct Outage: Hashable, Sendable {
        /// The times in milliseconds since 1970. `end` is `nil` if the outage is not over.
        var start: Int64
        var end: Int64?
        var state: RecordedState
        var cause: Cause?
        /// The identifier of the incident to which the outage belongs; `nil` if there is none.
        var incident: String?
        /// Whether the history has the outage.
        var isRecorded = true
    }

    struct StateChange: Hashable, Sendable {
        /// The time in milliseconds since 1970.
        var time: Int64
        var state: RecordedState
        var cause: Cause?
    }

    /// A change of the path.
    struct PathEvent: Hashable, Sendable {
        /// The time in milliseconds since 1970.
        var time: Int64
        var isSatisfied: Bool
        /// The name of the path's interface; `nil` if there is none.
        var interface: String?
        /// The names of the reasons: `gateways-changed`, ….
        var reasons: [String]
        var cause: Cause?
    }
}

extension TargetDetail.PathEvent {
    /// The maximum number of reasons in a text. A path that is lost or found changes in nearly every way.
    private static let shownReasons = 3

    /// The first reasons, and the number of the others: `interface-changed, gateways-changed, dns-changed and 4 more`.
    var reasonText: String {
        let others = reasons.count - Self.shownReasons
        return reasons.prefix(Self.shownReasons).joined(separator: ", ") + (others > 0 ? " and \(others) more" : "")
    }

    /// The keys of a recorded `path` that people see.
    private struct Keys: Decodable {
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

    /// Creates an event from the keys of a `path` record as JSON; `nil` if it is not a path.
    init?(time: Int64, record: String) {
        guard let path = try? JSONDecoder().decode(Keys.self, from: Data(record.utf8)) else { return nil }
        let cause = path.cause.map {
            Cause(Cause.Layer(rawValue: $0.layer), Cause.Code(rawValue: $0.code), detail: $0.detail)
        }
        self.init(
            time: time, isSatisfied: path.status == "satisfied", interface: path.interface, reasons: path.reasons, cause: cause)
    }
}

/// The round trips or the response times of a part of a span.
struct TimePoint: Hashable, Sendable {
    /// The times in milliseconds since 1970.
    var period: Range<Int64>
    /// The round trips or response times in units of a ``Sample``; `nil` if no probe succeeded, or if none is known.
    var minimum: UInt32?
    var median: UInt32?
    /// The value that 95 % of them do not exceed.
    var high: UInt32?
    /// The value that 99 % of them do not exceed; `nil` for round trips.
    var highest: UInt32?
    /// The number of probes, and of failed ones among them.
    var probes: Int
    var lost: Int

    /// Creates the point of the round trips of an hour or a day.
    init(roundTripsOf summary: PeriodSummary) {
        self.init(
            period: summary.period, minimum: summary.roundTrips.minimum, median: summary.roundTrips.quantile(0.5),
            high: summary.roundTrips.quantile(0.95), probes: summary.probes, lost: summary.lost)
    }

    /// Creates the point of the response times of an hour or a day; `nil` if an earlier version has recorded it without them.
    init?(responseTimesOf summary: PeriodSummary) {
        let times = summary.responseTimes
        guard times.count > 0 || summary.roundTrips.count == 0 else { return nil }
        self.init(
            period: summary.period, minimum: times.minimum, median: times.quantile(0.5), high: times.quantile(0.95),
            highest: times.quantile(0.99), probes: summary.probes, lost: summary.lost)
    }

    init(
        period: Range<Int64>, minimum: UInt32?, median: UInt32?, high: UInt32?, highest: UInt32? = nil, probes: Int, lost: Int
    ) {
        (self.period, self.minimum, self.median, self.high, self.highest) = (period, minimum, median, high, highest)
        (self.probes, self.lost) = (probes, lost)
    }

    /// The part of the probes that failed, from 0 to 1.
    var loss: Double { probes > 0 ? Double(lost) / Double(probes) : 0 }
}

/// The part of a target's history that its page shows, and the form of the answer.
struct TargetQuery: Hashable, Sendable {
    enum Format: String, Hashable, Sendable { case html, json, csv }

    var span = BarSpan.day
    /// The interval of the timeline in milliseconds since 1970; `nil` for the span.
    var interval: Range<Int64>?
    var format = Format.html
    /// Whether only the changing parts of the page are wanted, for its script.
    var isPart = false
    /// The first parameter that is not valid; it is ignored. `nil` if all are valid.
    var problem: QueryProblem?

    init() {}

    /// Creates the query of a URL. A value that is not valid is ignored.
    init(_ parameters: QueryParameters) {
        problem = parameters.problem
        func note(_ parameter: String, _ detail: String) {
            if problem == nil { problem = QueryProblem(parameter: parameter, detail: detail) }
        }
        if let text = parameters["span"], !text.isEmpty {
            if let span = BarSpan(rawValue: text) { self.span = span } else { note("span", BarSpan.form) }
        }
        if let text = parameters["format"], !text.isEmpty {
            if let format = Format(rawValue: text) {
                self.format = format
            } else {
                note("format", "the forms are html, json and csv")
            }
        }
        isPart = parameters["part"] == "1"
        guard let text = parameters["at"], !text.isEmpty else { return }
        interval = Self.interval(text)
        if interval == nil { note("at", "not a start and an end in seconds since 1970, as in 1764090000-1764093600") }
    }

    private static func interval(_ text: String) -> Range<Int64>? {
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        // Seconds up to the year 9999.
        guard bounds.count == 2, let start = bounds[0], let end = bounds[1], start >= 0, start < end, end < 253_402_300_800 else {
            return nil
        }
        return start * 1_000..<end * 1_000
    }

    /// The text of an interval in the query: its seconds since 1970, rounded outwards.
    static func text(_ interval: Range<Int64>) -> String {
        "\(max(0, interval.lowerBound / 1_000))-\(max(0, interval.upperBound / 1_000 + (interval.upperBound % 1_000 > 0 ? 1 : 0)))"
    }
}
