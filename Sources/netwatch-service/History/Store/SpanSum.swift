/// The sum of the summaries of a target over a time.
struct SpanSum {
    private var sum: PeriodSummary
    /// The starts of the hours that were added by their samples.
    private var exact: [Int64] = []
    /// The start of the first summary with recorded time, and whether it continues an outage.
    private var first: (start: Int64, continuesOutage: Bool)?

    init(_ span: Range<Int64>) { sum = PeriodSummary(span) }

    /// Adds a part of an hour by its samples. The summary of the hour is then ignored.
    mutating func add(_ timeline: HourTimeline, in part: Range<Int64>) {
        exact.append(timeline.hour.lowerBound)
        sum.add(timeline.summary(of: part), from: part.lowerBound, &first)
    }

    /// Adds the part of a summary that is in the time.
    mutating func add(_ summary: PeriodSummary) {
        let part = summary.period.clamped(to: sum.period)
        guard !part.isEmpty, !exact.contains(summary.period.lowerBound) else { return }
        let (length, accounted) = (part.upperBound - part.lowerBound, summary.times.total)
        // The first and the last hour of a target can be accounted in part, and that part can be in the time.
        guard accounted > length else { return sum.add(summary, from: part.lowerBound, &first) }
        let scale = Double(length) / Double(accounted)
        var scaled = summary
        for state in RecordedState.allCases { scaled.times[state] = Int64(Double(summary.times[state]) * scale) }
        scaled.probes = Int(Double(summary.probes) * scale)
        scaled.lost = Int(Double(summary.lost) * scale)
        sum.add(scaled, from: part.lowerBound, &first)
    }

    /// The sum, in which the time without summaries was not recorded.
    var completed: PeriodSummary {
        var sum = sum
        sum.continuesOutage = first?.continuesOutage == true
        sum.times[.notRecorded] += max(0, sum.period.upperBound - sum.period.lowerBound - sum.times.total)
        return sum
    }
}

extension PeriodSummary {
    fileprivate mutating func add(
        _ summary: PeriodSummary, from start: Int64, _ first: inout (start: Int64, continuesOutage: Bool)?
    ) {
        add(summary)
        guard !summary.hasNoRecordedTime, first.map({ start < $0.start }) ?? true else { return }
        first = (start, summary.continuesOutage)
    }
}
