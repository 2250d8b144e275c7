/// The summary of a target over an hour or a day.
struct PeriodSummary: Hashable, Sendable {
    /// The times in milliseconds since 1970.
    var period: Range<Int64>
    var times = StateTimes()
    /// The number of results, and of failed probes among them.
    var probes = 0
    var lost = 0
    var roundTrips = RoundTripHistogram()
    /// Fewer than the round trips if the period began with an earlier version.
    var responseTimes = RoundTripHistogram()
    /// The number of outages that were counted in the period: times in which the target is down or unreachable, from the moment at which they
    /// have lasted as long as an outage must (``OutageCounter``).
    var outages = 0
    /// Whether the period begins within an outage that was counted before.
    var continuesOutage = false

    /// The number of outages that overlap the period.
    var overlappingOutages: Int { outages + (continuesOutage ? 1 : 0) }

    /// Whether nothing was recorded so far.
    var hasNoRecordedTime: Bool { times.total == times[.notRecorded] }

    init(_ period: Range<Int64>) { self.period = period }

    mutating func add(_ sample: Sample) {
        probes += 1
        if let roundTrip = sample.roundTrip { roundTrips.add(roundTrip) } else { lost += 1 }
        if let responseTime = sample.responseTime { responseTimes.add(responseTime) }
    }

    /// Adds another summary, as an hour to a day. The period stays the same.
    mutating func add(_ other: PeriodSummary) {
        times = times + other.times
        probes += other.probes
        lost += other.lost
        roundTrips.add(other.roundTrips)
        responseTimes.add(other.responseTimes)
        outages += other.outages
    }
}
