import Expectations
import Pacing
import Testing

@testable import netwatch_service

@Suite struct TargetLedgerTests {
    private static let hour: Int64 = 3_600_000

    @Test func `each millisecond belongs to one state`() throws {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(at: 0, in: &calendar)
        _ = ledger.change(to: .up, at: 100, in: &calendar)
        _ = ledger.change(to: .down, at: 1_100, in: &calendar)
        let ended = ledger.advance(to: Self.hour + 5, in: &calendar)
        let hour = try #require(ended.hours.first)
        expectEqual(ended.hours.count, 1)
        expectEqual(ended.days.count, 0)
        expectEqual(hour.period, 0..<Self.hour)
        expectEqual(hour.times[.unknown], 100)
        expectEqual(hour.times[.up], 1_000)
        expectEqual(hour.times[.down], Self.hour - 1_100)
        expectEqual(ledger.currentHour.times[.down], 5)
        expectEqual(ledger.currentDay.times[.down], Self.hour + 5 - 1_100)
    }

    @Test func `an earlier time changes the state and no time`() {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(.up, at: 1_000, in: &calendar)
        _ = ledger.change(to: .down, at: 500, in: &calendar)
        _ = ledger.advance(to: 1_010, in: &calendar)
        expectEqual(ledger.currentHour.times[.up], 0)
        expectEqual(ledger.currentHour.times[.down], 10)
    }

    @Test func `results are counted in the hour and the day of their time`() throws {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(at: 0, in: &calendar)
        _ = ledger.add(Sample(time: 10, state: .up, roundTrip: 100), in: &calendar)
        let ended = ledger.add(Sample(time: Self.hour, state: .down, roundTrip: nil), in: &calendar)
        expectEqual(ended.hours.map(\.probes), [1])
        expectEqual(ledger.currentHour.probes, 1)
        expectEqual(ledger.currentHour.lost, 1)
        expectEqual(ledger.currentDay.probes, 2)
        expectEqual(ledger.currentDay.lost, 1)
        expectEqual(ledger.currentDay.roundTrips.maximum, 100)
    }

    @Test func `a gap is time that was not recorded`() {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(.up, at: Self.hour / 2, in: &calendar)
        let gap = Self.hour..<(3 * Self.hour + 60_000)
        let ended = ledger.skip(gap, in: &calendar)
        expectEqual(ended.hours.map(\.period.lowerBound), [0, Self.hour].prefix(ended.hours.count).map { $0 })
        expectEqual(ledger.state, .up)
        expectEqual(ledger.currentHour.period.lowerBound, 3 * Self.hour)
        expectEqual(ledger.currentHour.times[.notRecorded], 60_000)
        expectEqual(ledger.currentDay.times[.notRecorded], 2 * Self.hour + 60_000)
        expectEqual(ledger.currentDay.times[.up], Self.hour / 2)
    }

    @Test func `a gap of years makes at most the summaries of its first day`() {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(.up, at: 0, in: &calendar)
        let years = 60 * 365 * 24 * Self.hour
        let ended = ledger.skip(1_000..<years + 1_000, in: &calendar)
        expectEqual(ended.hours.count, 24)
        expectEqual(ended.days.count, 1)
        expectEqual(ended.days.first?.times.total, 24 * Self.hour)
        expectEqual(ledger.end, years + 1_000)
        expectEqual(ledger.currentDay.times[.notRecorded], 1_000)
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>, ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
    func `the seconds of all states sum to the wall time, whatever happens`(seed: UInt64, zone: String) throws {
        var random = SplitMix64(seed: seed)
        var calendar = try DayCalendarTests.calendar(zone)
        let start = try DayCalendarTests.time("2026-10-23T13:17:05Z")
        var ledger = TargetLedger(at: start, in: &calendar)
        var ended = TargetLedger.Ended()
        // A gap has no summaries of the periods inside it.
        var unsummarized: Int64 = 0
        func note(_ new: TargetLedger.Ended) {
            ended.hours += new.hours
            ended.days += new.days
        }
        for _ in 0..<400 {
            let time = ledger.end + Int64(random.next() % 4_000_000) - 300_000
            switch random.next() % 8 {
            case 0:
                let before = ledger.end
                let gap = time..<(max(time, before) + Int64(random.next() % 20_000_000))
                note(ledger.skip(gap, in: &calendar))
            case 1, 2:
                let state = RecordedState.allCases[Int(random.next() % 6)]
                note(ledger.change(to: state, at: time, in: &calendar))
            default:
                let trip = random.next() % 3 == 0 ? nil : UInt32(random.next() % 10_000)
                note(ledger.add(Sample(time: time, state: .up, roundTrip: trip), in: &calendar))
            }
        }
        var end: Int64?
        for hour in ended.hours {
            expectEqual(hour.period.upperBound - hour.period.lowerBound, Self.hour)
            if let end { unsummarized += hour.period.lowerBound - end }
            end = hour.period.upperBound
        }
        if let end { unsummarized += ledger.currentHour.period.lowerBound - end }
        let summed = ended.hours.reduce(ledger.currentHour.times.total) { $0 + $1.times.total }
        expectEqual(summed + unsummarized, ledger.end - start, "seed \(seed)")
        for hour in ended.hours.dropFirst() { expectEqual(hour.times.total, Self.hour, "seed \(seed)") }
        for day in ended.days.dropFirst() {
            expectEqual(day.times.total, day.period.upperBound - day.period.lowerBound, "seed \(seed)")
        }
        let days = ended.days.reduce(ledger.currentDay.times.total) { $0 + $1.times.total }
        expectEqual(days, ledger.end - start, "seed \(seed): the longest gap is shorter than a day")
    }

    // MARK: Outages

    /// Returns the outages of the hours of a target whose state changes at seconds, and whether each hour continues one.
    private func outages(_ changes: [(RecordedState, Int64)], until end: Int64, limit: Int64 = 20) -> [String] {
        var calendar = DayCalendar { _ in 0 }
        var ledger = TargetLedger(.up, at: 0, in: &calendar)
        ledger.setOutageLimit(limit * 1_000)
        var hours: [PeriodSummary] = []
        for (state, second) in changes { hours += ledger.change(to: state, at: second * 1_000, in: &calendar).hours }
        hours += ledger.advance(to: end * 1_000, in: &calendar).hours
        let days = ledger.currentDay.outages
        expectEqual(days, (hours + [ledger.currentHour]).reduce(0) { $0 + $1.outages })
        return (hours + [ledger.currentHour]).map { "\($0.outages)\($0.continuesOutage ? " continued" : "")" }
    }

    @Test func `an outage counts when it has lasted long enough, in the hour of that moment`() {
        // The restart of a server is none.
        expectEqual(outages([(.down, 100), (.up, 105)], until: 200), ["0"])
        expectEqual(outages([(.down, 100), (.up, 105)], until: 200, limit: 0), ["1"])
        expectEqual(outages([(.down, 100), (.unreachable, 110), (.up, 120)], until: 200), ["1"])
        expectEqual(outages([(.down, 100), (.up, 119)], until: 200), ["0"])
        expectEqual(outages([(.down, 100)], until: 119), ["0"])
        // It begins in the first hour, and is one in the second.
        expectEqual(outages([(.down, 3_590), (.up, 3_605)], until: 3_700), ["0", "0"])
        expectEqual(outages([(.down, 3_590), (.up, 3_615)], until: 3_700), ["0", "1"])
        expectEqual(outages([(.down, 3_500), (.up, 3_615)], until: 3_700), ["1", "0 continued"])
    }

    @Test func `a time that was not recorded neither begins nor ends an outage, and is no part of it`() {
        func outages(_ first: Int64, gap: Range<Int64>, then state: RecordedState, until end: Int64) -> String {
            var calendar = DayCalendar { _ in 0 }
            var ledger = TargetLedger(.up, at: 0, in: &calendar)
            ledger.setOutageLimit(20_000)
            _ = ledger.change(to: .down, at: first * 1_000, in: &calendar)
            _ = ledger.skip(gap.lowerBound * 1_000..<gap.upperBound * 1_000, in: &calendar)
            _ = ledger.change(to: state, at: gap.upperBound * 1_000, in: &calendar)
            _ = ledger.advance(to: end * 1_000, in: &calendar)
            return "\(ledger.currentDay.outages)\(ledger.currentHour.continuesOutage ? " continued" : "")"
        }
        expectEqual(outages(100, gap: 110..<150, then: .down, until: 159), "0")
        expectEqual(outages(100, gap: 110..<150, then: .down, until: 160), "1")
        expectEqual(outages(100, gap: 130..<150, then: .down, until: 190), "1")
        // A machine that is suspended during an outage, and finds the target up an hour later.
        expectEqual(outages(3_000, gap: 3_100..<3_700, then: .up, until: 3_800), "1")
        expectEqual(outages(3_000, gap: 3_100..<3_700, then: .down, until: 3_800), "1 continued")
    }

    @Test func `a part of an hour has the outages of the ledger`() {
        var random = SplitMix64(seed: 11)
        for seed in 0..<300 {
            var calendar = DayCalendar { _ in 0 }
            var ledger = TargetLedger(.up, at: 0, in: &calendar)
            ledger.setOutageLimit(20_000)
            var samples = [Sample(changeAt: 0, to: .up)]
            var time: Int64 = 0
            while samples.count < 30 {
                time += Int64(random.next() % 30_000)
                let sample = Sample(changeAt: time, to: RecordedState.allCases[Int(random.next() % 6)])
                _ = ledger.change(to: sample.state, at: time, in: &calendar)
                samples.append(sample)
            }
            _ = ledger.advance(to: time + 25_000, in: &calendar)
            let timeline = HourTimeline(hour: 0..<Self.hour, samples: samples, end: ledger.end, outageLimit: 20_000)
            let whole = timeline.summary(of: 0..<Self.hour)
            #expect(whole.outages == ledger.currentHour.outages && whole.times == ledger.currentHour.times, "\(seed)")
            // The parts have the outages of the whole, each of them once.
            let middle = Int64(random.next() % UInt64(ledger.end))
            let (first, second) = (timeline.summary(of: 0..<middle), timeline.summary(of: middle..<Self.hour))
            expectEqual(first.outages + second.outages, whole.outages, "\(seed)")
            expectEqual(first.times + second.times, whole.times, "\(seed)")
        }
    }

    @Test func `availability counts degraded as up, and unreachable apart`() {
        var times = StateTimes()
        times[.up] = 80
        times[.degraded] = 10
        times[.down] = 10
        times[.unreachable] = 100
        times[.unknown] = 50
        times[.maintenance] = 50
        times[.notRecorded] = 100
        let availability = Availability(times)
        expectEqual(availability.server, 0.9)
        expectEqual(availability.withLocalCauses, 0.45)
        expectEqual(availability.observed, 0.5)
        expectEqual(Availability(StateTimes()), Availability(StateTimes()))
        expectNil(Availability(StateTimes()).server)
    }
}
