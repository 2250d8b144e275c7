import EventLoop
import Expectations
import Foundation
import NetworkLab
import Pacing
import Testing

@testable import netwatch_service

/// The accounting of time by the store, over restarts.
@Suite(.timeLimit(.minutes(5))) struct HistoryRestartTests {
    /// A target as the test expects it.
    private struct Model {
        var state: RecordedState
        var times = StateTimes()
        var samples: [Sample] = []
        var end: Int64
        let start: Int64
        private var parts: [(Range<Int64>, RecordedState)] = []

        init(_ state: RecordedState, at time: Int64) { (self.state, end, start) = (state, time, time) }

        mutating func advance(to time: Int64, as state: RecordedState? = nil) {
            guard time > end else { return }
            times[state ?? self.state] += time - end
            parts.append((end..<time, state ?? self.state))
            end = time
        }

        /// The summary of a part of the time, and the number of outages in it.
        func summary(of span: Range<Int64>) -> (times: StateTimes, results: [Sample], outages: Int) {
            var (times, outages, isOut) = (StateTimes(), 0, false)
            for (period, state) in parts {
                let part = period.clamped(to: span)
                times[state] += part.upperBound - part.lowerBound
                // A gap neither begins nor ends an outage.
                guard !part.isEmpty, state != .notRecorded else { continue }
                if state.isOutage, !isOut { outages += 1 }
                isOut = state.isOutage
            }
            return (times, samples.filter { span.contains($0.time) }, outages)
        }
    }

    @Test(arguments: 1...(Sanitizer.isUsed ? 3 : 12) as ClosedRange<UInt64>)
    func `the seconds of all states sum to the wall time, whenever the service is killed or stopped`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        func below(_ limit: Int64) -> Int64 { Int64(random.next() % UInt64(limit)) }
        var history = try TestHistory()
        history.calendar = try DayCalendarTests.calendar(seed % 2 == 0 ? "Europe/Berlin" : "Asia/Kathmandu")
        var time = try DayCalendarTests.time("2026-10-24T13:17:05Z") + below(1_000_000)
        var models: [Model] = []
        var (store, recovered) = try history.open(at: time)
        let names = (0..<4).map { "target \($0)" }
        for name in names { _ = try store.numbers(name) }
        func begin() -> [HistoryEvent] {
            (0..<4).map { .begin(target: $0, .unknown, at: time) }
        }
        models = names.map { _ in Model(.unknown, at: time) }
        store.record(HistoryTurn(TestHistory.reading(time), begin()))

        for _ in 0..<250 {
            let choice = below(100)
            time += choice < 60 ? below(60_000) : below(1_200_000)
            switch choice {
            case 0..<60:
                let events = (0..<4).compactMap { target -> HistoryEvent? in
                    guard below(3) > 0 else { return nil }
                    let sample = Sample(
                        time: time - below(20), state: RecordedState.allCases[Int(1 + below(4))],
                        roundTrip: below(4) == 0 ? nil : UInt32(below(100_000)))
                    models[target].advance(to: sample.time)
                    models[target].state = sample.state
                    models[target].samples.append(sample)
                    return .sample(target: target, sample)
                }
                store.record(HistoryTurn(TestHistory.reading(time), events))
            case 60..<75:
                let (target, state) = (Int(below(4)), RecordedState.allCases[Int(below(6))])
                models[target].advance(to: time)
                models[target].state = state
                store.record(time, .change(target: target, state, at: time))
            case 75..<85:
                let start = time
                time += below(8_000_000)
                for target in 0..<4 {
                    models[target].advance(to: start)
                    models[target].advance(to: time, as: .notRecorded)
                }
                store.record(time, .gap(HistoryGap(period: start..<time, reason: .suspend)))
            case 85..<92:
                store.record(time)
                try store.checkpointAndWait()
            default:
                // The last turn is the last sign of life.
                store.record(time)
                store.settle()
                for target in 0..<4 { models[target].advance(to: time) }
                if choice % 2 == 0 {
                    store.close()
                } else {
                    let killed = try history.killed()
                    store.close()
                    history = killed
                }
                let stopped = time
                time += below(30_000_000)
                (store, recovered) = try history.open(at: time)
                expectEqual(recovered.lastAlive?.wall, stopped, "seed \(seed)")
                for target in 0..<4 {
                    expectEqual(recovered.ledgers[target]?.end, stopped, "seed \(seed)")
                    models[target].advance(to: time, as: .notRecorded)
                    models[target].state = .unknown
                }
                let gap = HistoryEvent.gap(HistoryGap(period: stopped..<time, reason: .stopped))
                store.record(HistoryTurn(TestHistory.reading(time), [gap] + begin()))
            }
        }
        store.record(time)
        store.settle()
        for target in 0..<4 { models[target].advance(to: time) }

        // A reader of another process sees the same as the next service.
        let offline = try HistoryReader.open(directory: history.settings.directory, calendar: history.calendar)
        let span = models[0].start..<time
        let sums = try offline.summaries(span)
        for target in 0..<4 {
            let (sum, model) = (try #require(sums[target]), models[target])
            expectEqual(sum.times, model.times, "seed \(seed)")
            expectEqual(sum.times.total, span.upperBound - span.lowerBound)
            let results = model.summary(of: span).results
            expectEqual(sum.probes, results.count)
            expectEqual(sum.lost, results.count { $0.roundTrip == nil })
            let samples = try offline.samples(of: target, 0..<Int64.max, limit: 100_000).elements
            expectEqual(samples, model.samples.sorted { $0.time < $1.time }, "seed \(seed)")
        }
        // Every part of the time is exact, whether its hours are in the database or in the logs.
        for _ in 0..<300 {
            let start = span.lowerBound + below(span.upperBound - span.lowerBound)
            let part = start..<start + 1 + below(min(span.upperBound - start, below(2) == 0 ? 200_000 : .max))
            let sums = try offline.summaries(part)
            let running = try store.query { try $0.summaries(part) }
            expectEqual(sums, running)
            for target in 0..<4 {
                let (sum, expected) = (try #require(sums[target]), models[target].summary(of: part))
                expectEqual(sum.times, expected.times, "seed \(seed), \(part), target \(target)")
                #expect(sum.probes == expected.results.count && sum.lost == expected.results.count { $0.roundTrip == nil })
                expectEqual(sum.overlappingOutages, expected.outages, "seed \(seed), \(part), target \(target)")
            }
        }
        offline.close()
        store.close()
        let (last, _) = try history.open(at: time)
        let again = try last.query { try $0.summaries(span) }
        expectEqual(again.mapValues(\.times), sums.mapValues(\.times), "seed \(seed)")
        last.close()
    }

    @Test func `a target that is removed and added again keeps its history, and the time between was not recorded`() throws {
        let (history, noon) = (try TestHistory(), TestHistory.noon)
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.record(noon + 10_000, .end(target: 0, at: noon + 10_000))
        // Samples of no target, and of one that is not monitored, change nothing.
        store.record(noon + 15_000, .sample(target: 9, Sample(time: noon + 12_000, state: .up, roundTrip: 1)))
        store.record(noon + 30_000, .begin(target: 0, .down, at: noon + 30_000))
        store.record(noon + 40_000)
        store.close()
        let ledger = try #require(try history.open(at: noon + 50_000).recovered.ledgers[0])
        let times = ledger.currentHour.times
        expectEqual(times[.up], 10_000)
        expectEqual(times[.notRecorded], 20_000)
        expectEqual(times[.down], 10_000)
    }

    @Test func `withdrawing removes everything after a time, and the accounting continues there`() throws {
        let (history, noon, hour) = (try TestHistory(), TestHistory.noon, TestHistory.hour)
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        for minute in 1...300 {
            let time = noon + Int64(minute) * 60_000
            store.record(time, .sample(target: 0, Sample(time: time, state: minute < 100 ? .up : .down, roundTrip: 5)))
        }
        store.record(
            noon + 5 * hour + 1_000, .gap(HistoryGap(period: noon + 5 * hour..<noon + 5 * hour + 1_000, reason: .suspend)))
        store.record(pathEvent: "{}", at: noon + 5 * hour)
        let (done, result) = (Completion(), Locked<[Int: TargetLedger]>([:]))
        let past = noon + 2 * hour + 90_000
        store.withdraw(after: past) { outcome in
            result.withLock { $0 = (try? outcome.get()) ?? [:] }
            done.signal()
        }
        done.wait()
        let ledger = try #require(result.withLock { $0[0] })
        #expect(ledger.end == past && ledger.state == .down && ledger.currentHour.times.total == 90_000)
        expectEqual(ledger.currentDay.times.total, 14 * hour + 90_000)
        try expectEqual(store.query { try $0.samples(of: 0, 0..<Int64.max) }.elements.last?.time, noon + 2 * hour + 60_000)
        try expectEmpty(store.query { try $0.gaps(0..<Int64.max) })
        try expectEmpty(store.query { try $0.pathEvents(0..<Int64.max) })
        store.record(past + 30_000, .change(target: 0, .up, at: past + 30_000))
        store.close()
        let recovered = try history.open(at: past + 40_000).recovered
        expectEqual(recovered.lastAlive?.wall, past + 30_000)
        expectEqual(recovered.ledgers[0]?.currentHour.times.total, 120_000)
    }

    @Test func `a silence of days is not accounted hour by hour`() throws {
        let (history, noon) = (try TestHistory(), TestHistory.noon)
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        let later = noon + 40 * 365 * 24 * TestHistory.hour
        store.record(later, .sample(target: 0, Sample(time: later, state: .up, roundTrip: 1)))
        store.close()
        let (second, recovered) = try history.open(at: later)
        expectEqual(recovered.ledgers[0]?.end, later)
        #expect(try second.query { try $0.summaries(.hour, of: 0, 0..<Int64.max) }.count < 50)
        second.close()
    }

    @Test func `a log of another database is not applied`() throws {
        let noon = TestHistory.noon
        let (first, second) = (try TestHistory(), try TestHistory())
        let (other, _) = try first.open()
        _ = try other.numbers("x")
        other.record(noon, .begin(target: 0, .down, at: noon))
        other.record(noon + 10_000)
        other.settle()
        let (store, _) = try second.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        store.close()
        let log = try #require(first.names.first { $0.hasPrefix("recent") })
        try FileManager.default.copyItem(atPath: first.path(log), toPath: second.path("recent-900.dat"))
        other.close()
        let (last, recovered) = try second.open(at: noon + 20_000)
        #expect(recovered.ledgers[0]?.state == .up && recovered.ledgers[0]?.end == noon)
        #expect(!second.names.contains("recent-900.dat"))
        last.close()
    }

    @Test func `a log at its limit records again after a checkpoint`() throws {
        let noon = TestHistory.noon
        let history = try TestHistory()
        history.settings.logLimit = 2_000
        let (store, _) = try history.open()
        _ = try store.numbers("a")
        store.record(noon, .begin(target: 0, .up, at: noon))
        var time = noon
        while store.status.isRecording {
            time += 1_000
            store.record(time, .sample(target: 0, Sample(time: time, state: .up, roundTrip: UInt32(time % 7_919))))
            store.settle()
            try #require(time < noon + 1_000_000)
        }
        #expect(store.status.reason?.contains("limit") == true)
        try store.checkpointAndWait()
        time += 10_000
        store.record(time)
        store.settle()
        #expect(store.status.isRecording && store.droppedSamples == 1)
        store.close()
        let (last, recovered) = try history.open(at: time)
        #expect(recovered.lastAlive?.wall == time && recovered.ledgers[0]?.currentHour.times.total == time - noon)
        try expectEqual(last.query { try $0.gaps(0..<Int64.max) }.map(\.reason), [.notRecorded])
        last.close()
        last.record(time + 1)
        #expect(throws: HistoryStore.closedError) { _ = try last.numbers("b") }
    }
}
