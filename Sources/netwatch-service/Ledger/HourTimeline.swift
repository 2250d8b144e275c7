/// The states and results of a target in an hour, from the samples of its blocks.
struct HourTimeline {
    /// The hour in milliseconds since 1970.
    let hour: Range<Int64>
    /// The samples in the order in which they were accounted. The time before the first one was not recorded.
    let samples: [Sample]
    /// The end of the accounted time.
    let end: Int64

    /// Returns the summary of a part of the hour. Time that was not recorded at its start or its end is in no state.
    func summary(of part: Range<Int64>) -> PeriodSummary {
        var summary = PeriodSummary(part)
        guard let first = samples.first else { return summary }
        var (accounted, state) = (first.time, first.state)
        // A gap neither begins nor ends an outage.
        var isOut: Bool?
        func account(until time: Int64) {
            let time = min(time, end, hour.upperBound)
            guard time > accounted else { return }
            let (start, limit) = (max(accounted, part.lowerBound), min(time, part.upperBound))
            if start < limit { summary.times[state] += limit - start }
            accounted = time
        }
        for sample in samples {
            account(until: sample.time)
            state = sample.state
            if sample.isResult, part.contains(sample.time) { summary.add(sample) }
            guard state != .notRecorded, state.isOutage != isOut else { continue }
            if accounted <= part.lowerBound || isOut == nil {
                summary.continuesOutage = state.isOutage && accounted < part.upperBound
            } else if state.isOutage {
                if accounted < part.upperBound { summary.outages += 1 }
            } else if summary.hasNoRecordedTime, summary.outages == 0 {
                // An outage before a gap is not known to have lasted until its end.
                summary.continuesOutage = false
            }
            isOut = state.isOutage
        }
        account(until: end)
        return summary
    }
}
