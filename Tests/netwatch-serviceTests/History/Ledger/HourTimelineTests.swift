import Expectations
import Testing

@testable import netwatch_service

@Suite struct HourTimelineTests {
    private let samples: [Sample] = [
        Sample(changeAt: 0, to: .unknown), Sample(time: 10, state: .up, roundTrip: 5),
        Sample(time: 20, state: .down, roundTrip: nil),
        Sample(changeAt: 30, to: .notRecorded), Sample(changeAt: 50, to: .down), Sample(time: 60, state: .up, roundTrip: 7),
    ]

    private func summary(_ part: Range<Int64>, until end: Int64 = 3_600_000) -> PeriodSummary {
        HourTimeline(hour: 0..<3_600_000, samples: samples, end: end).summary(of: part)
    }

    @Test func `each millisecond of a part is in the state of the last sample before it`() {
        let part = summary(15..<65)
        expectEqual(part.times[.up], 10)
        expectEqual(part.times[.down], 20)
        expectEqual(part.times[.notRecorded], 20)
        expectEqual(part.probes, 2)
        expectEqual(part.lost, 1)
        expectEqual(part.roundTrips.maximum, 7)
        expectEqual(part.times.total, 50)
        expectEqual(summary(0..<3_600_000).times.total, 3_600_000)
    }

    @Test func `time after the end is in no state`() {
        expectEqual(summary(55..<100, until: 70).times.total, 15)
        expectEqual(summary(80..<100, until: 70).times.total, 0)
    }

    @Test func `an outage begins once, also if a gap interrupts it`() {
        expectEqual(summary(0..<100).outages, 1)
        expectEqual(summary(25..<100).outages, 0)
        expectEqual(summary(25..<100).continuesOutage, true)
        expectEqual(summary(60..<100).overlappingOutages, 0)
    }

    @Test func `no samples make an empty summary`() {
        expectEqual(HourTimeline(hour: 0..<100, samples: [], end: 100).summary(of: 0..<100), PeriodSummary(0..<100))
    }

    @Test func `a block keeps changes of the state`() throws {
        try expectEqual(SampleBlock(samples).samples(), samples)
    }

    @Test func `two parts of an hour are joined without repeating the state`() {
        let next = [Sample(changeAt: 60, to: .up), Sample(time: 70, state: .down, roundTrip: nil)]
        expectEqual(samples.joined(with: next), samples + next.dropFirst())
        expectEqual(samples.joined(with: [Sample(changeAt: 60, to: .unknown)]).count, samples.count + 1)
    }
}
