/// The states and results of a target in an hour, from the samples of its blocks.
struct HourTimeline {
    /// The hour in milliseconds since 1970.
    let hour: Range<Int64>
    /// The samples in the order in which they were accounted. The time before the first one was not recorded.
    let samples: [Sample]
    /// The end of the accounted time.
    let end: Int64
    /// The time that a failure lasts before it is an outage, in milliseconds.
    var outageLimit: Int64 = 0
    /// Whether an outage with which the samples begin was counted before.
    var continuesOutage = true

    /// Returns the summary of a part of the hour. Time that was not recorded at its start or its end is in no state.
    func summary(of part: Range<Int64>) -> PeriodSummary {
        var summary = PeriodSummary(part)
        guard let first = samples.first else { return summary }
        var (accounted, state) = (first.time, first.state)
        // A gap at the start is in an outage if the state after it is one.
        let isCounted = state == .notRecorded || continuesOutage && state.isOutage
        var outages = OutageCounter(limit: outageLimit, isCounted: isCounted)
        func account(until time: Int64) {
            let time = min(time, end, hour.upperBound)
            while accounted < time {
                let next = accounted < part.lowerBound ? part.lowerBound : accounted < part.upperBound ? part.upperBound : time
                let limit = min(next, time)
                let isInPart = part.lowerBound <= accounted && accounted < part.upperBound
                if isInPart { summary.times[state] += limit - accounted }
                if outages.advance(by: limit - accounted, in: state), isInPart { summary.outages += 1 }
                accounted = limit
                if accounted == part.lowerBound { summary.continuesOutage = outages.isCounted }
            }
        }
        if part.lowerBound <= accounted, accounted < part.upperBound { summary.continuesOutage = outages.isCounted }
        for sample in samples {
            account(until: sample.time)
            state = sample.state
            if sample.isResult, part.contains(sample.time) { summary.add(sample) }
            guard accounted < part.upperBound else { continue }
            if outages.change(to: state), part.lowerBound <= accounted { summary.outages += 1 }
            // An outage before a gap is not known to have lasted until its end.
            if !outages.isCounted, summary.hasNoRecordedTime, summary.outages == 0 { summary.continuesOutage = false }
        }
        account(until: end)
        return summary
    }
}
