import Expectations
import Testing

@testable import netwatch_service

@Suite struct HistoryRecorderTests {
    @Test func `a result is recorded at its time, with the state after it`() {
        var recorder = HistoryRecorder(ClockReading(wall: 1_000, monotonic: 0, bootTime: 0))
        recorder.add(7)
        Self.read(&recorder, wall: 1_250, elapsed: 250)
        recorder.add(.init(target: 7, state: .up, roundTrip: 12, time: 1_100))
        expectEqual(
            recorder.takeTurn(),
            HistoryTurn(
                ClockReading(wall: 1_250, monotonic: 250, bootTime: 250),
                [
                    .begin(target: 7, .unknown, at: 1_000),
                    .sample(target: 7, Sample(time: 1_100, state: .up, roundTrip: 12)),
                ]))
        expectEmpty(recorder.takeTurn().events)
    }

    @Test func `a result never precedes the one before it, and never follows the clock`() {
        var recorder = HistoryRecorder(ClockReading(wall: 1_000, monotonic: 0, bootTime: 0))
        recorder.add(7)
        recorder.add(.init(target: 7, state: .up, roundTrip: 1, time: 900))
        recorder.add(.init(target: 7, state: .up, roundTrip: 1, time: 5_000))
        expectEqual(Self.times(recorder.takeTurn()), [1_000, 1_000, 1_000])
    }

    @Test func `maintenance replaces the state until it ends`() {
        var recorder = HistoryRecorder(ClockReading(wall: 0, monotonic: 0, bootTime: 0))
        recorder.add(7)
        _ = recorder.takeTurn()
        recorder.change(7, isInMaintenance: true)
        recorder.change(7, to: .down, at: 0)
        recorder.add(.init(target: 7, state: .down, roundTrip: nil, time: 0))
        recorder.change(7, isInMaintenance: false)
        expectEqual(
            recorder.takeTurn().events,
            [
                .change(target: 7, .maintenance, at: 0),
                .sample(target: 7, Sample(time: 0, state: .maintenance, roundTrip: nil)),
                .change(target: 7, .down, at: 0),
            ])
    }

    @Test func `a clock that shows a time again records no results`() {
        var recorder = HistoryRecorder(ClockReading(wall: 100_000, monotonic: 0, bootTime: 0))
        recorder.add(7)
        _ = recorder.takeTurn()
        Self.read(&recorder, wall: 40_000, elapsed: 250)
        recorder.add(.init(target: 7, state: .down, roundTrip: nil, time: 40_000))
        #expect(recorder.isRepeated)
        expectEqual(recorder.takeTurn(), HistoryTurn(ClockReading(wall: 100_000, monotonic: 250, bootTime: 250)))
        // The state of that time is known when the clock passes the recorded time.
        Self.read(&recorder, wall: 100_250, elapsed: 60_500)
        recorder.add(.init(target: 7, state: .down, roundTrip: nil, time: 100_250))
        expectEqual(Self.times(recorder.takeTurn()), [100_250])
    }

    @Test func `a suspended machine is a gap`() {
        var recorder = HistoryRecorder(ClockReading(wall: 0, monotonic: 0, bootTime: 0))
        recorder.add(7)
        _ = recorder.takeTurn()
        _ = recorder.read(ClockReading(wall: 60_250, monotonic: 250, bootTime: 60_250))
        expectEqual(recorder.takeTurn().events, [.gap(HistoryGap(period: 250..<60_250, reason: .suspend))])
    }

    @Test func `a clock that was far in the future withdraws the history, and all targets begin again`() {
        var recorder = HistoryRecorder(ClockReading(wall: 10_000_000, monotonic: 0, bootTime: 0))
        recorder.add(7)
        recorder.add(8)
        _ = recorder.takeTurn()
        let time = recorder.read(ClockReading(wall: 1_000, monotonic: 250, bootTime: 250))
        expectEqual(time, 1_000)
        expectEqual(
            recorder.takeTurn().events, [.begin(target: 7, .unknown, at: 1_000), .begin(target: 8, .unknown, at: 1_000)])
    }

    @Test func `results of a removed target are ignored`() {
        var recorder = HistoryRecorder(ClockReading(wall: 0, monotonic: 0, bootTime: 0))
        recorder.add(7)
        recorder.remove(7)
        recorder.add(.init(target: 7, state: .up, roundTrip: 1, time: 0))
        recorder.change(7, to: .down, at: 0)
        expectEqual(recorder.takeTurn().events, [.begin(target: 7, .unknown, at: 0), .end(target: 7, at: 0)])
    }

    // MARK: The first results

    /// A transcript of a target: its recorded states with their times, in seconds since the start.
    private struct Beginning {
        var recorder = HistoryRecorder(ClockReading(wall: 1_000_000, monotonic: 0, bootTime: 0))
        private var texts: [String] = []

        init(outageLimit: Int64 = 20_000) {
            recorder.add(7, outageLimit: outageLimit)
            note()
        }

        mutating func advance(to second: Int64) {
            let elapsed = second * 1_000
            _ = recorder.read(ClockReading(wall: 1_000_000 + elapsed, monotonic: elapsed, bootTime: elapsed))
            note()
        }

        mutating func result(_ state: RecordedState, at second: Int64) {
            advance(to: second)
            recorder.change(7, to: state, at: 1_000_000 + second * 1_000)
            note()
        }

        private mutating func note() {
            for event in recorder.takeTurn().events {
                switch event {
                case .begin(_, let state, let time), .change(_, let state, let time):
                    texts.append("\(state) \((time - 1_000_000) / 1_000)")
                default: break
                }
            }
        }

        /// The states since the last call.
        mutating func states() -> [String] {
            defer { texts = [] }
            return texts
        }
    }

    @Test func `failures before the first success of a target that comes up in time are unknown`() {
        var target = Beginning()
        target.result(.unreachable, at: 3)
        target.result(.down, at: 12)
        target.result(.up, at: 15)
        // Later failures count.
        target.result(.down, at: 18)
        target.advance(to: 60)
        expectEqual(target.states(), ["unknown 0", "up 15", "down 18"])
    }

    @Test func `failures before the first success count from the time on that makes an outage`() {
        var target = Beginning()
        target.result(.down, at: 3)
        target.advance(to: 19)
        expectEqual(target.states(), ["unknown 0"])
        target.advance(to: 21)
        expectEqual(target.states(), ["down 20"])
        target.result(.unreachable, at: 30)
        target.result(.degraded, at: 40)
        expectEqual(target.states(), ["unreachable 30", "degraded 40"])
    }

    @Test func `neither a boot nor the restart of a server is an outage, and a longer failure is one`() {
        var recorder = HistoryRecorder(ClockReading(wall: 1_000_000, monotonic: 0, bootTime: 0))
        var calendar = DayCalendar { _ in 0 }
        var book = LedgerBook([nil], DayCalendar { _ in 0 })
        recorder.add(0, outageLimit: 20_000)
        func state(_ state: RecordedState, at second: Int64) {
            Self.read(&recorder, wall: 1_000_000 + second * 1_000, elapsed: second * 1_000)
            recorder.change(0, to: state, at: 1_000_000 + second * 1_000)
            book.apply(recorder.takeTurn())
        }
        func day() -> PeriodSummary {
            book.advance()
            return book.entries[0]?.ledger.currentDay ?? PeriodSummary(calendar.day(containing: 0))
        }
        // The network comes up 15 s after the service.
        state(.unreachable, at: 3)
        state(.up, at: 15)
        state(.up, at: 100)
        #expect(day().outages == 0 && day().times[.unknown] == 15_000 && day().times[.unreachable] == 0)
        // systemctl restart nginx
        state(.down, at: 100)
        state(.up, at: 105)
        state(.up, at: 200)
        #expect(day().outages == 0 && day().times[.down] == 5_000)
        state(.down, at: 200)
        state(.up, at: 230)
        #expect(day().outages == 1 && day().times[.down] == 35_000 && day().times[.up] == 180_000)
    }

    @Test func `a success after that time and failures without a limit are as they are`() {
        var target = Beginning(outageLimit: 0)
        target.result(.down, at: 3)
        expectEqual(target.states(), ["unknown 0", "down 3"])
        var late = Beginning()
        late.advance(to: 100)
        late.result(.down, at: 110)
        expectEqual(late.states(), ["unknown 0", "down 110"])
    }

    @Test func `a target in maintenance has no unknown time, and a later limit is recorded`() {
        var recorder = HistoryRecorder(ClockReading(wall: 0, monotonic: 0, bootTime: 0))
        recorder.add(7, isInMaintenance: true, outageLimit: 20_000)
        recorder.setOutageLimit(20_000, of: 7)
        recorder.setOutageLimit(5_000, of: 7)
        recorder.change(7, to: .down, at: 0)
        Self.read(&recorder, wall: 30_000, elapsed: 30_000)
        recorder.change(7, isInMaintenance: false)
        expectEqual(
            recorder.takeTurn().events,
            [
                .begin(target: 7, .maintenance, at: 0), .outageLimit(target: 7, 20_000), .outageLimit(target: 7, 5_000),
                .change(target: 7, .down, at: 30_000),
            ])
    }

    @Test func `a withdrawal of the history does not extend the unknown time`() {
        var recorder = HistoryRecorder(ClockReading(wall: 10_000_000, monotonic: 0, bootTime: 0))
        recorder.add(7, outageLimit: 20_000)
        recorder.change(7, to: .down, at: 10_000_000)
        _ = recorder.takeTurn()
        expectEqual(recorder.read(ClockReading(wall: 1_000, monotonic: 250, bootTime: 250)), 1_000)
        Self.read(&recorder, wall: 22_000, elapsed: 21_250)
        expectEqual(
            recorder.takeTurn().events,
            [.begin(target: 7, .unknown, at: 1_000), .outageLimit(target: 7, 20_000), .change(target: 7, .down, at: 21_000)])
    }

    private static func read(_ recorder: inout HistoryRecorder, wall: Int64, elapsed: Int64) {
        _ = recorder.read(ClockReading(wall: wall, monotonic: elapsed, bootTime: elapsed))
    }

    private static func times(_ turn: HistoryTurn) -> [Int64] {
        turn.events.compactMap { event in
            switch event {
            case .begin(_, _, let time), .change(_, _, let time), .end(_, let time): time
            case .sample(_, let sample): sample.time
            case .gap, .outageLimit: nil
            }
        }
    }
}
