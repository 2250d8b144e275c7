import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct QualityWindowTests {
    private let defaults = QualityLimits()
    private let lossless = QualityLimits(loss: nil)

    /// Records results: a number is a round trip in milliseconds, `nil` a lost result. Returns the conditions after each.
    @discardableResult
    private func record(
        _ results: some Sequence<Double?>, _ limits: QualityLimits, _ window: inout QualityWindow
    ) -> [QualityWindow.Condition?] {
        results.map { milliseconds in
            let before = window.condition
            let isChanged = window.record(milliseconds.map { .microseconds(Int64($0 * 1_000)) }, limits)
            expectEqual(isChanged, (before != window.condition))
            return window.condition
        }
    }

    private func answers(_ count: Int, _ milliseconds: Double = 10) -> [Double?] { Array(repeating: milliseconds, count: count) }

    // MARK: Memory

    @Test func `a window needs 24 bytes, and allocates only if a limit needs round trips`() {
        #expect(MemoryLayout<QualityWindow>.size <= 24)
        #expect(MemoryLayout<QualityLimits>.size <= 20)
        var window = QualityWindow()
        record(answers(30), defaults, &window)
        #expect(window.medianMicroseconds == nil && window.count == 20)
        record(answers(30), QualityLimits(roundTrip: .seconds(1)), &window)
        expectEqual(window.medianMicroseconds, 10_000)
    }

    // MARK: Loss

    @Test func `loss begins with the fourth lost result of 20, and ends after a complete window with at most one`() {
        var window = QualityWindow()
        record(answers(20), defaults, &window)
        #expect(record([nil, 10, nil, 10, nil], defaults, &window).allSatisfy { $0 == nil })
        expectEqual(record([nil], defaults, &window), [.loss])
        // 19 results later the last loss is the oldest result of the window; from then on a window of 20 has to pass.
        let conditions = record(answers(60), defaults, &window)
        expectEqual(conditions.firstIndex(of: nil), 18 + 19)
        #expect(conditions.suffix(22).allSatisfy { $0 == nil })
    }

    @Test func `without a limit of loss no loss degrades`() {
        var window = QualityWindow()
        #expect(record(Array(repeating: nil, count: 40), lossless, &window).allSatisfy { $0 == nil })
    }

    @Test func `two lost results at the start do not degrade, and four do`() {
        var window = QualityWindow()
        #expect(record([nil, nil, 10, 10, nil], defaults, &window).allSatisfy { $0 == nil })
        expectEqual(record([nil], defaults, &window), [.loss])
    }

    @Test func `a limit of zero is reached with the first lost result`() {
        let limits = QualityLimits(loss: 0)
        var window = QualityWindow()
        #expect(record(answers(25), limits, &window).allSatisfy { $0 == nil })
        expectEqual(record([nil], limits, &window), [.loss])
        expectEqual(record(answers(40), limits, &window).firstIndex(of: nil), 38)
    }

    @Test(arguments: [0.1, 0.2, 0.3, 0.5]) func `a burst of losses is seen within the window`(limit: Double) {
        let limits = QualityLimits(loss: limit)
        for seed in 0..<100 as Range<UInt64> {
            var (window, random) = (QualityWindow(), SplitMix64(seed: seed))
            record(answers(.random(in: 0...60, using: &random)), limits, &window)
            expectNil(window.condition)
            // Losses of the limit's part, anywhere in 20 results.
            var burst = (0..<20).map { $0 < Int(limit * 20) ? nil : 10.0 as Double? }
            burst.shuffle(using: &random)
            let conditions = record(burst, limits, &window)
            expectEqual(conditions.last, .loss, "seed \(seed)")
            expectEqual(conditions.firstIndex(of: .loss), burst.lastIndex(of: nil), "seed \(seed)")
        }
    }

    @Test func `losses in regular distances at the limit degrade once and for all`() {
        for step in 2...5 {
            var window = QualityWindow()
            let conditions = record((0..<500).map { $0 % step == 0 ? nil : 10 }, defaults, &window)
            let first = conditions.firstIndex(of: .loss) ?? 500
            #expect(first < 20 && conditions[first...].allSatisfy { $0 == .loss })
        }
    }

    @Test(arguments: [0.8, 0.9, 1, 1.1, 1.25]) func `a constant random loss near the limit changes the condition rarely`(
        part: Double
    ) {
        var (changes, comparisons, degraded) = (0, 0, 0)
        for seed in 0..<100 as Range<UInt64> {
            var (window, random) = (QualityWindow(), SplitMix64(seed: seed))
            var (wasAbove, changesOfRun) = (false, 0)
            for _ in 0..<300 {
                let isLost = Double.random(in: 0..<1, using: &random) < 0.2 * part
                if window.record(isLost ? nil : .milliseconds(10), defaults) { changesOfRun += 1 }
                // The same without hysteresis.
                if (window.lostCount >= 4) != wasAbove { comparisons += 1 }
                wasAbove = window.lostCount >= 4
                if window.condition == .loss { degraded += 1 }
            }
            #expect(changesOfRun <= 5, "seed \(seed)")
            changes += changesOfRun
        }
        // Of 100 runs of 300 results, 100 changes are the beginnings.
        #expect(changes <= 220 && changes * 8 < comparisons, "\(changes) changes, \(comparisons) of a plain comparison")
        #expect(degraded > 15_000)
    }

    @Test func `a loss far below the limit does not degrade`() {
        var (window, random) = (QualityWindow(), SplitMix64(seed: 3))
        let conditions = record(
            (0..<2_000).map { _ in Double.random(in: 0..<1, using: &random) < 0.01 ? nil : 10 }, defaults, &window)
        #expect(conditions.allSatisfy { $0 == nil })
    }

    // MARK: Round trips

    @Test func `latency begins when half of the window has round trips and their median reaches the limit`() {
        let limits = QualityLimits(roundTrip: .milliseconds(200))
        var window = QualityWindow()
        #expect(record(answers(9, 200), limits, &window).allSatisfy { $0 == nil })
        expectEqual(record([200], limits, &window), [.latency])
        // The median is below three quarters of the limit from the eleventh quick answer on.
        let conditions = record(answers(60, 150), limits, &window)
        expectEqual(conditions.firstIndex(of: nil), 10 + 19)
    }

    @Test func `a median between three quarters of the limit and the limit neither begins nor ends latency`() {
        let limits = QualityLimits(roundTrip: .milliseconds(200))
        var (quick, slow) = (QualityWindow(), QualityWindow())
        #expect(record(answers(100, 180), limits, &quick).allSatisfy { $0 == nil })
        record(answers(20, 220), limits, &slow)
        #expect(record(answers(100, 180), limits, &slow).allSatisfy { $0 == .latency })
    }

    @Test func `lost results leave latency as it is`() {
        let limits = QualityLimits(loss: nil, roundTrip: .milliseconds(200))
        var window = QualityWindow()
        record(answers(20, 300), limits, &window)
        #expect(record(Array(repeating: nil, count: 40), limits, &window).allSatisfy { $0 == .latency })
        #expect(window.lostCount == 20 && window.medianMicroseconds == nil)
    }

    @Test func `a response time begins and ends as latency does, and results without one leave it as it is`() {
        let limits = QualityLimits(responseTime: .milliseconds(200))
        var window = QualityWindow()
        func record(_ count: Int, response milliseconds: Int64?) -> [QualityWindow.Condition?] {
            (0..<count).map { _ in
                window.record(.milliseconds(1), responseTime: milliseconds.map { .milliseconds($0) }, limits)
                return window.condition
            }
        }
        #expect(record(9, response: 200).allSatisfy { $0 == nil })
        expectEqual(record(1, response: 200), [.response])
        expectEqual(window.medianMicroseconds, 1_000)
        expectEqual(window.medianResponseMicroseconds, 200_000)
        #expect(record(30, response: nil).allSatisfy { $0 == .response } && window.medianResponseMicroseconds == nil)
        // Twenty results whose median is at most 150 ms; the comparison begins with the tenth.
        expectEqual(record(60, response: 150).firstIndex(of: nil), 9 + 19)
        window.record(nil, responseTime: .seconds(9), limits)
        expectEqual(window.medianResponseMicroseconds, 150_000)
    }

    @Test func `one slow answer is no jitter, and alternating answers are`() {
        let limits = QualityLimits(jitter: .milliseconds(30))
        var window = QualityWindow()
        record(answers(20), limits, &window)
        #expect(record([2_000] + answers(30), limits, &window).allSatisfy { $0 == nil })
        let conditions = record((0..<20).map { $0 % 2 == 0 ? 10 : 60 }, limits, &window)
        #expect(conditions.contains(.jitter) && conditions.last == .jitter)
        expectEqual(record(answers(60), limits, &window).last, .some(nil))
    }

    @Test(.skippedByThreadSanitizer, arguments: [0.9, 1, 1.1])
    func `random round trips with a median near the limit change the condition rarely`(
        part: Double
    ) {
        let limits = QualityLimits(roundTrip: .milliseconds(100))
        var changes = 0
        for seed in 0..<50 as Range<UInt64> {
            var (window, random) = (QualityWindow(), SplitMix64(seed: seed))
            for _ in 0..<500 {
                let milliseconds = 100 * part * Double.random(in: 0.7...1.3, using: &random)
                if window.record(.microseconds(Int64(milliseconds * 1_000)), limits) { changes += 1 }
            }
        }
        // Without an end, there is one change in each of the 50 runs.
        #expect(changes <= 50, "\(changes) changes")
    }

    @Test func `latency comes before the response time, and that before jitter`() {
        let limits = QualityLimits(
            loss: nil, roundTrip: .milliseconds(20), responseTime: .milliseconds(20), jitter: .milliseconds(20))
        var window = QualityWindow()
        for number in 0..<20 {
            window.record(.milliseconds(number % 2 == 0 ? 1 : 30), responseTime: .milliseconds(40), limits)
        }
        expectEqual(window.condition, .response)
        for _ in 0..<20 { window.record(.milliseconds(30), responseTime: .milliseconds(40), limits) }
        expectEqual(window.condition, .latency)
    }

    @Test func `loss comes before latency, and latency before jitter`() {
        let limits = QualityLimits(loss: 0.2, roundTrip: .milliseconds(20), jitter: .milliseconds(20))
        var window = QualityWindow()
        let jittery: [Double?] = (0..<20).map { $0 % 2 == 0 ? 1 : 30 }
        expectEqual(record(jittery, limits, &window).last, .jitter)
        expectEqual(record(answers(20, 30), limits, &window).last, .latency)
        expectEqual(record([nil, nil, nil, nil], limits, &window).last, .loss)
    }

    @Test func `after a reset no result is remembered`() {
        let limits = QualityLimits(roundTrip: .milliseconds(20))
        var window = QualityWindow()
        record([nil, nil, nil, nil] + answers(16, 30), limits, &window)
        expectEqual(window.condition, .loss)
        window.reset()
        #expect(window == QualityWindow() && window.cause(limits) == nil)
    }

    @Test func `a smaller window forgets earlier results`() {
        let limits = QualityLimits(roundTrip: .seconds(1), window: 5)
        var window = QualityWindow()
        expectEqual(record([nil], limits, &window), [.loss])
        record(answers(4, 50) + answers(5, 70), limits, &window)
        #expect(window.lostCount == 0 && window.medianMicroseconds == 70_000 && window.count == 5)
        expectNil(window.condition)
    }

    // MARK: Values

    @Test func `median and jitter are those of the last results, for random round trips`() {
        let limits = QualityLimits(loss: nil, roundTrip: .seconds(60))
        var (window, random) = (QualityWindow(), SplitMix64(seed: 21))
        var all: [Int?] = []
        for _ in 0..<2_000 {
            let next = Int.random(in: 0..<4, using: &random) == 0 ? nil : Int.random(in: 1...90_000, using: &random)
            all.append(next)
            window.record(next.map { .microseconds(Int64($0)) }, limits)
            let recent = all.suffix(20).compactMap { $0 }
            let sorted = recent.sorted()
            let median = sorted.isEmpty ? nil : (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
            expectEqual(window.medianMicroseconds.map(Int.init), median)
            let differences = zip(recent, recent.dropFirst()).map { abs($0 - $1) }.sorted().dropLast(2)
            let jitter = differences.isEmpty ? nil : differences.reduce(0, +) / differences.count
            expectEqual(window.jitterMicroseconds.map(Int.init), jitter)
        }
    }

    @Test func `extreme round trips and limits do not overflow`() {
        let limits = QualityLimits(loss: 2, roundTrip: .seconds(Int64.max / 2), jitter: .seconds(-5), window: .max)
        #expect(limits.loss == 1 && limits.jitter == .microseconds(1) && limits.window == 20)
        var window = QualityWindow()
        for number in 0..<50 {
            window.record(number % 2 == 0 ? .seconds(Int64.max / 2) : .seconds(-9), limits)
            _ = window.cause(limits)
        }
        expectEqual(window.condition, .jitter)
        #expect(QualityLimits(loss: .nan).loss == nil && QualityLimits(loss: -1, window: -3).window == 5)
        #expect(QualityLimits(loss: 0.2).loss == 0.2 && QualityLimits().roundTrip == nil)
    }

    // MARK: The cause

    @Test func `the cause of loss has the numbers and the limit`() {
        var window = QualityWindow()
        record([nil, nil, nil, nil] + answers(8), defaults, &window)
        let cause = window.cause(defaults)
        #expect(cause?.layer == .quality && cause?.code == .loss)
        expectEqual(cause?.detail, "4 of the last 12 packets were lost (limit 20 %)")
        expectEqual(
            cause?.evidence,
            [
                "results": .number(12), "lost": .number(4), "loss_percent": .number(33), "loss_limit_percent": .number(20),
            ])
    }

    @Test func `the causes of latency and jitter have the values and the limits`() {
        let limits = QualityLimits(roundTrip: .milliseconds(8), jitter: .milliseconds(20))
        var window = QualityWindow()
        record(answers(10, 9.25), limits, &window)
        expectEqual(window.cause(limits)?.code, .latency)
        expectEqual(window.cause(limits)?.detail, "the median round trip is 9.3 ms (limit 8.0 ms)")
        expectEqual(window.cause(limits)?.evidence["rtt_median_us"], .number(9_250))
        expectEqual(window.cause(limits)?.evidence["rtt_limit_us"], .number(8_000))
        let jittery = QualityLimits(jitter: .milliseconds(20))
        window.reset()
        record((0..<20).map { $0 % 2 == 0 ? 10 : 60 }, jittery, &window)
        expectEqual(window.cause(jittery)?.code, .jitter)
        expectEqual(window.cause(jittery)?.detail, "consecutive round trips differ by 50 ms on average (limit 20 ms)")
        expectEqual(window.cause(jittery)?.evidence["jitter_us"], .number(50_000))
        expectEqual(window.cause(jittery)?.evidence["jitter_limit_us"], .number(20_000))
    }
}
