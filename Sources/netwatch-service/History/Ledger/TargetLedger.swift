import Pacing

/// The accounting of a target's time: each millisecond is in exactly one state, of one hour and of one day.
struct TargetLedger: Sendable {
    private static let hour: Int64 = 3_600_000

    /// The state since the last change.
    private(set) var state: RecordedState
    /// The end of the accounted time in milliseconds since 1970.
    private(set) var end: Int64
    private(set) var currentHour: PeriodSummary
    private(set) var currentDay: PeriodSummary
    private(set) var outages: OutageCounter

    /// The summaries of the periods that have ended.
    struct Ended: Hashable, Sendable {
        var hours: [PeriodSummary] = []
        var days: [PeriodSummary] = []
    }

    /// Begins the accounting.
    ///
    /// - Parameters:
    ///   - state: the present state.
    ///   - time: the present time of the ``HistoryClock``.
    ///   - calendar: the days.
    init(_ state: RecordedState = .unknown, at time: Int64, in calendar: inout DayCalendar) {
        (self.state, end, outages) = (state, time, OutageCounter())
        currentHour = PeriodSummary(Self.hour(containing: time))
        currentDay = PeriodSummary(calendar.day(containing: time))
        if outages.change(to: state) { countOutage() }
    }

    /// Continues the accounting of an earlier ledger.
    init(_ state: RecordedState, end: Int64, hour: PeriodSummary, day: PeriodSummary, outages: OutageCounter? = nil) {
        (self.state, self.end, currentHour, currentDay) = (state, end, hour, day)
        self.outages = outages ?? OutageCounter(isCounted: state.isOutage)
    }

    /// Sets the time that a failure lasts before it is an outage, in milliseconds.
    mutating func setOutageLimit(_ limit: Int64) { outages.limit = limit }

    /// Accounts the time until now, and begins another state. An earlier time than before changes only the state.
    mutating func change(to state: RecordedState, at time: Int64, in calendar: inout DayCalendar) -> Ended {
        let ended = advance(to: time, in: &calendar)
        if outages.change(to: state) { countOutage() }
        // An outage before a gap that begins the period is not known to have lasted until now.
        if !outages.isCounted {
            if currentHour.hasNoRecordedTime { currentHour.continuesOutage = false }
            if currentDay.hasNoRecordedTime { currentDay.continuesOutage = false }
        }
        self.state = state
        return ended
    }

    private mutating func countOutage() {
        currentHour.outages += 1
        currentDay.outages += 1
    }

    /// Accounts the time until now, and adds a result.
    mutating func add(_ sample: Sample, in calendar: inout DayCalendar) -> Ended {
        let ended = change(to: sample.state, at: sample.time, in: &calendar)
        currentHour.add(sample)
        currentDay.add(sample)
        return ended
    }

    /// Accounts the time until now.
    mutating func advance(to time: Int64, in calendar: inout DayCalendar) -> Ended {
        var ended = Ended()
        while end < time { step(to: time, state, &ended, &calendar) }
        return ended
    }

    /// Accounts the time until the start of a gap, and the gap as not recorded.
    ///
    /// Days that are completely in the gap, and their hours, have no summary: a clock that is set forward by years would have
    /// millions.
    mutating func skip(_ gap: Range<Int64>, in calendar: inout DayCalendar) -> Ended {
        var ended = advance(to: gap.lowerBound, in: &calendar)
        guard end < gap.upperBound else { return ended }
        for period in [currentHour.period, currentDay.period] where period.upperBound <= gap.upperBound {
            while end < period.upperBound { step(to: period.upperBound, .notRecorded, &ended, &calendar) }
        }
        let remaining = end..<gap.upperBound
        begin(\.currentHour, Self.hour(containing: gap.upperBound), remaining)
        let day = calendar.day(containing: gap.upperBound)
        if currentDay.period.upperBound != day.upperBound, currentDay.times.total > 0 {
            // A day within the gap, or one of another time zone, ends here.
            currentDay.period = currentDay.period.lowerBound..<end
            ended.days.append(currentDay)
            currentDay = emptySummary(of: max(end, day.lowerBound)..<day.upperBound)
        }
        begin(\.currentDay, day, remaining)
        end = gap.upperBound
        return ended
    }

    /// Accounts the end of a gap in a summary, and begins another one if the gap ends in another period.
    private mutating func begin(
        _ summary: WritableKeyPath<TargetLedger, PeriodSummary>, _ period: Range<Int64>, _ gap: Range<Int64>
    ) {
        // A day can begin later, after a day of another time zone.
        if self[keyPath: summary].period.upperBound == period.upperBound {
            self[keyPath: summary].times[.notRecorded] += gap.upperBound - max(gap.lowerBound, period.lowerBound)
        } else {
            self[keyPath: summary] = emptySummary(of: period)
            self[keyPath: summary].times[.notRecorded] = gap.upperBound - period.lowerBound
        }
    }

    /// Returns the empty summary of a period that begins in the present state.
    private func emptySummary(of period: Range<Int64>) -> PeriodSummary {
        var summary = PeriodSummary(period)
        summary.continuesOutage = outages.isCounted
        return summary
    }

    /// Accounts time until `time`, or until the end of the hour or the day.
    private mutating func step(to time: Int64, _ state: RecordedState, _ ended: inout Ended, _ calendar: inout DayCalendar) {
        let next = min(time, currentHour.period.upperBound, currentDay.period.upperBound)
        currentHour.times[state] += next - end
        currentDay.times[state] += next - end
        if outages.advance(by: next - end, in: state) { countOutage() }
        end = next
        if end == currentHour.period.upperBound {
            ended.hours.append(currentHour)
            currentHour = emptySummary(of: Self.hour(containing: end))
        }
        if end == currentDay.period.upperBound {
            ended.days.append(currentDay)
            currentDay = emptySummary(of: end..<calendar.day(containing: end).upperBound)
        }
    }

    /// Returns the hour of UTC that contains a time.
    static func hour(containing time: Int64) -> Range<Int64> {
        let start = time - time.floorDivided(by: hour).remainder
        return start..<start + hour
    }
}

/// A ledger as bytes: its version, the values as LEB128 numbers, and a CRC-32. Those of version 1 have no outage counter.
extension TargetLedger {
    /// The encoded ledger. `isActive` is whether the target is monitored; tests create ledgers of an earlier format.
    func bytes(isActive: Bool, _ format: SampleFormat = .responseTimes) -> [UInt8] {
        var writer = VarintWriter()
        writer.append(format.rawValue)
        writer.append(isActive ? 1 : 0)
        writer.append(UInt64(state.rawValue))
        writer.append(signed: end)
        for summary in [currentHour, currentDay] { summary.append(to: &writer, format) }
        if format != .roundTrips { outages.append(to: &writer) }
        return writer.bytes + writer.checksum
    }

    /// Decodes a ledger; `nil` if the bytes are those of none.
    static func decode(_ bytes: [UInt8]) -> (ledger: TargetLedger, isActive: Bool)? {
        guard bytes.count > 4, Array(bytes.suffix(4)) == CRC32.bytes(of: bytes.dropLast(4)) else { return nil }
        var reader = VarintReader(bytes.dropLast(4))
        guard let format = reader.next().flatMap(SampleFormat.init), let active = reader.next(), active <= 1,
            let number = reader.next(), number < 8,
            let state = RecordedState(rawValue: UInt8(number)), let end = reader.nextSigned(), end == SampleBlock.limited(end),
            let hour = PeriodSummary(&reader, format), let day = PeriodSummary(&reader, format)
        else { return nil }
        let outages = format != .roundTrips ? OutageCounter(&reader) : OutageCounter(isCounted: state.isOutage)
        guard let outages, reader.isAtEnd else { return nil }
        // The accounting continues from the end, which is in the current hour and in the current day.
        guard hour.period == Self.hour(containing: end), day.period.contains(end) else { return nil }
        return (TargetLedger(state, end: end, hour: hour, day: day, outages: outages), active == 1)
    }
}

extension PeriodSummary {
    func append(to writer: inout VarintWriter, _ format: SampleFormat) {
        writer.append(signed: period.lowerBound)
        writer.append(UInt64(clamping: period.upperBound - period.lowerBound))
        for state in RecordedState.allCases { writer.append(UInt64(clamping: times[state])) }
        writer.append(UInt64(clamping: probes))
        writer.append(UInt64(clamping: lost))
        writer.append(UInt64(clamping: outages))
        writer.append(continuesOutage ? 1 : 0)
        roundTrips.append(to: &writer)
        if format == .responseTimes { responseTimes.append(to: &writer) }
    }

    /// Reads an encoded summary; `nil` if the bytes are those of none.
    init?(_ reader: inout VarintReader, _ format: SampleFormat) {
        guard let start = reader.nextSigned(), start == SampleBlock.limited(start), let length = reader.next(),
            length <= 1 << 40
        else { return nil }
        self.init(start..<start + Int64(length))
        for state in RecordedState.allCases {
            guard let time = reader.next(), time <= length else { return nil }
            times[state] = Int64(time)
        }
        guard let probes = reader.next(), probes <= 1 << 40, let lost = reader.next(), lost <= probes,
            let outages = reader.next(), outages <= 1 << 40, let continues = reader.next(), continues <= 1,
            let roundTrips = RoundTripHistogram(&reader),
            let responseTimes = format == .roundTrips ? RoundTripHistogram() : RoundTripHistogram(&reader)
        else { return nil }
        self.responseTimes = responseTimes
        (self.probes, self.lost, self.roundTrips) = (Int(probes), Int(lost), roundTrips)
        (self.outages, continuesOutage) = (Int(outages), continues == 1)
    }
}
