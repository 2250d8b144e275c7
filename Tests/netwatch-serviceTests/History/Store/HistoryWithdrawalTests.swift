import EventLoop
import Expectations
import Reachability
import Testing

@testable import netwatch_service

/// A clock that was wrong, and a configuration with another time zone.
@Suite(.timeLimit(.minutes(5))) struct HistoryWithdrawalTests {
    private let noon = TestHistory.noon
    private let hour = TestHistory.hour

    /// Withdraws the history after a time, and waits.
    private func withdraw(_ store: HistoryStore, after time: Int64) {
        let done = Completion()
        store.withdraw(after: time) { _ in done.signal() }
        done.wait()
    }

    private func incident(_ id: String, from began: Int64, to ended: Int64? = nil) -> Incident {
        func moment(_ time: Int64) -> Moment { Moment(monotonicNanoseconds: 0, wallClockNanoseconds: time * 1_000_000) }
        return Incident(
            id: id, state: ended == nil ? .open : .over, scope: .server, subject: .init(.target, "a"),
            cause: Cause(.tcp, .refused, detail: "refused"), targetCount: 1, targets: [], began: moment(began),
            ended: ended.map(moment), moment: moment(ended ?? began))
    }

    @Test func `time of an hour without results was not recorded, also after a withdrawal to it`() throws {
        let history = try TestHistory()
        // The service starts with a clock that is three hours fast.
        let fast = noon + 3 * hour
        let store = try history.open(at: fast).store
        _ = try store.numbers("a")
        store.record(fast, .begin(target: 0, .up, at: fast))
        store.record(fast + 5_000)
        let now = noon + 1_800_000
        withdraw(store, after: now)
        store.record(now, .begin(target: 0, .up, at: now))
        store.record(now + 5_000)
        try store.checkpointAndWait()
        let span = noon - 600_000..<now + 5_000
        let times = try store.query { try $0.summaries(span) }[0]?.times
        #expect(times?[.up] == 5_000 && times?[.notRecorded] == 2_400_000)
        store.close()
    }

    @Test func `incidents stay after a withdrawal, and begin not later than it`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        let began = noon + 2 * hour
        store.record(incident("open", from: began), of: TargetSet([0])) {}
        store.record(incident("over", from: began, to: began + 60_000), of: TargetSet([0])) {}
        store.settle()
        // A state that the keeper has dated for the withdrawal can be written before it.
        store.record(incident("open", from: noon + 1_000), of: TargetSet([0])) {}
        store.settle()
        withdraw(store, after: noon + 1_000)
        let found = try store.query { try $0.incidents(0..<Int64.max, of: 0) }.elements
        expectEqual(Set(found.map(\.id)), ["open", "over"])
        #expect(found.allSatisfy { $0.began.milliseconds == noon + 1_000 })
        expectEqual(found.first { $0.id == "over" }?.ended?.milliseconds, noon + 1_000)
        store.close()
    }

    @Test func `a withdrawal to the hour in which a day of another zone ended`() throws {
        let history = try TestHistory()
        history.calendar = DayCalendar { _ in 10 * TestHistory.hour }
        let fast = noon + 1_500_000
        var (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.record(fast)
        store.close()
        history.calendar = DayCalendar { _ in 8 * TestHistory.hour }
        (store, _) = try history.open(at: fast)
        store.record(fast, .begin(target: 0, .up, at: fast))
        let ahead = fast + 5 * hour
        store.record(ahead, .gap(HistoryGap(period: fast + 300_000..<ahead, reason: .notRecorded)))
        withdraw(store, after: fast + 600_000)
        let times = try store.query { try $0.summaries(TestHistory.noon..<TestHistory.noon + TestHistory.hour) }[0]?.times
        expectEqual(times?[.up], 1_800_000)
        store.close()
    }

    @Test func `another time zone loses no time of the running day`() throws {
        let history = try TestHistory()
        // The days begin at 14:00 UTC, and after the change at 16:00 UTC.
        history.calendar = DayCalendar { _ in 10 * TestHistory.hour }
        var (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.record(noon + 3 * hour)
        store.close()
        history.calendar = DayCalendar { _ in 8 * TestHistory.hour }
        let again = noon + 3 * hour + 60_000
        (store, _) = try history.open(at: again)
        store.record(
            again, .gap(HistoryGap(period: again - 60_000..<again, reason: .stopped)), .begin(target: 0, .up, at: again))
        store.record(noon + 6 * hour)
        try store.checkpointAndWait()
        let (whole, part) = (noon - 24 * hour..<noon + 24 * hour, noon..<noon + 6 * hour)
        for span in [whole, part] {
            let times = try store.query { try $0.summaries(span) }[0]?.times
            expectEqual(times?[.up], 6 * hour - 60_000, "\(span)")
        }
        let days = try store.query { try $0.summaries(.day, of: 0, 0..<Int64.max) }
        expectEqual(days.map(\.times.total).reduce(0, +), 6 * hour)
        for (day, next) in zip(days, days.dropFirst()) { #expect(day.period.upperBound <= next.period.lowerBound) }
        store.close()
    }

    @Test func `a clock that is far in the future for a moment removes nothing`() throws {
        let history = try TestHistory()
        let store = try history.openWithTurns()
        try store.checkpointAndWait()
        let future = noon + 6 * 365 * 24 * hour
        store.record(HistoryTurn(ClockReading(wall: future, monotonic: 1_010_000, bootTime: 1_010_000), []))
        store.close()
        // The next run has the right clock. Its turns have the time of the end of the history.
        let (second, _) = try history.open(at: noon + 20_000)
        for minute in 1...90 as ClosedRange<Int64> {
            let time = 1_020_000 + minute * 60_000
            let reading = ClockReading(wall: future, monotonic: time, bootTime: time)
            second.record(HistoryTurn(reading, []), lag: future - noon - 20_000 - minute * 60_000)
        }
        try second.checkpointAndWait()
        try second.checkpointAndWait()
        try expectEqual(second.query { try $0.summaries(TestHistory.noon..<TestHistory.noon + 5_000) }[0]?.times[.up], 5_000)
        second.close()
    }

    @Test func `of too many gaps the last ones are returned`() throws {
        let history = try TestHistory()
        let store = try history.open().store
        let gaps = (0..<5).map { HistoryGap(period: noon + $0 * 60_000..<noon + $0 * 60_000 + 1_000, reason: .suspend) }
        store.record(HistoryTurn(TestHistory.reading(noon + hour), gaps.map { .gap($0) }))
        try store.checkpointAndWait()
        try expectEqual(store.query { try $0.gaps(0..<Int64.max, limit: 2) }, Array(gaps.suffix(2)))
        store.close()
    }
}
