import Expectations
import Testing

@testable import netwatch_service

@Suite struct TurnQueueTests {
    private func turn(_ second: Int64, _ events: HistoryEvent...) -> HistoryTurn {
        HistoryTurn(ClockReading(wall: 1_000_000 + second * 1_000, monotonic: second * 1_000, bootTime: second * 1_000), events)
    }

    private func sample(_ target: Int, _ state: RecordedState) -> HistoryEvent {
        .sample(target: target, Sample(time: 0, state: state, roundTrip: 1))
    }

    @Test func `turns of 60 seconds wait, and those before them become a gap with the states at its end`() {
        var queue = TurnQueue(limit: 60_000, start: 999_000)
        queue.append(turn(0, .begin(target: 0, .up, at: 1_000_000), sample(0, .up)))
        queue.append(turn(1, sample(0, .down), sample(1, .up), .end(target: 2, at: 0)))
        for second in 2...60 { queue.append(turn(Int64(second))) }
        expectEqual(queue.droppedSamples, 0)
        queue.append(turn(61))
        queue.append(turn(62))
        let (dropped, turns) = queue.takeAll()
        expectEqual(turns.map(\.time.monotonic), (2...62).map { $0 * 1_000 })
        expectEqual(queue.droppedSamples, 3)
        expectEqual(
            dropped?.replacement.events,
            [
                .gap(HistoryGap(period: 999_000..<1_001_000, reason: .notRecorded)), .begin(target: 0, .down, at: 1_001_000),
                .begin(target: 1, .up, at: 1_001_000), .end(target: 2, at: 1_001_000),
            ])
        #expect(queue.isEmpty)
    }

    @Test func `the next gap begins after the turns that were taken`() {
        var queue = TurnQueue(limit: 10_000, start: 0)
        queue.append(turn(0))
        expectEqual(queue.takeAll().turns.count, 1)
        queue.append(turn(1))
        queue.append(turn(100))
        expectEqual(queue.takeAll().dropped?.gap.period, 1_000_000..<1_001_000)
    }

    @Test func `a clock that is set forward drops nothing`() {
        var queue = TurnQueue(limit: 60_000, start: 0)
        queue.append(turn(0))
        queue.append(HistoryTurn(ClockReading(wall: 1 << 50, monotonic: 250, bootTime: 250)))
        expectNil(queue.takeAll().dropped)
    }
}
