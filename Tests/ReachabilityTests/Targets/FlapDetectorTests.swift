import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct FlapDetectorTests {
    private func changes(_ results: some Sequence<Bool>, _ detector: inout FlapDetector) -> [FlapDetector.Change] {
        results.compactMap { detector.record($0) }
    }

    @Test func `a flap detector needs at most 16 bytes`() { #expect(MemoryLayout<FlapDetector>.size <= 16) }

    @Test func `equal results, one failure, and one outage are not flapping`() {
        var detector = FlapDetector()
        expectEmpty(changes(Array(repeating: true, count: 50), &detector))
        expectEmpty(changes([false] + Array(repeating: true, count: 10), &detector))
        expectEmpty(changes(Array(repeating: false, count: 30) + Array(repeating: true, count: 30), &detector))
        expectEqual(detector.percent, 0)
    }

    @Test func `flapping begins at the sixth alternation and is reported once`() {
        var detector = FlapDetector()
        expectNil(detector.record(true))
        expectEmpty(changes([false, true, false, true, false], &detector))
        #expect(detector.percent == 29 && !detector.isFlapping)
        expectEqual(detector.record(true), .began)
        #expect(detector.percent == 35 && detector.isFlapping)
        expectEmpty(changes((0..<40).map { $0 % 2 == 1 }, &detector))
        expectEqual(detector.percent, 100)
    }

    @Test func `flapping ends below 25 percent and is reported once`() {
        var detector = FlapDetector()
        _ = changes((0..<40).map { $0 % 2 == 0 }, &detector)
        // Of 20 differences, the oldest n with the weights 0.75, 0.776, … remain. Six of them are 24.5 %, seven 29 %.
        expectEmpty(changes(Array(repeating: false, count: 13), &detector))
        expectEqual(detector.percent, 29)
        expectEqual(detector.record(false), .ended)
        expectEqual(detector.percent, 24)
        expectEmpty(changes(Array(repeating: false, count: 40), &detector))
        expectEqual(detector.percent, 0)
    }

    @Test func `a difference each four results does not begin flapping, and one each three results does not end it`() {
        var (steady, flapping) = (FlapDetector(), FlapDetector())
        // Five differences of 20 are 24 to 28 %, six or seven are 28 to 37 %.
        expectEmpty(changes((0..<400).map { $0 / 4 % 2 == 0 }, &steady))
        expectEqual(changes((0..<20).map { $0 % 2 == 0 }, &flapping), [.began])
        expectEmpty(changes((0..<400).map { $0 / 3 % 2 == 0 }, &flapping))
    }

    @Test func `the percentage is the weighted sum of the differences of the last 20 results, for random results`() {
        var random = SplitMix64(seed: 14)
        var (detector, results) = (FlapDetector(), [Bool]())
        var expected = false
        for _ in 0..<5_000 {
            results = results.suffix(20) + [Bool.random(using: &random) || Bool.random(using: &random)]
            let change = detector.record(results[results.count - 1])
            let pairs = zip(results.dropFirst(), results).reversed()
            let weight = pairs.enumerated().reduce(0.0) { sum, pair in
                pair.element.0 == pair.element.1 ? sum : sum + 1.25 - 0.5 * Double(pair.offset) / 19
            }
            let percent = weight / 20 * 100
            expectEqual(detector.percent, Int(percent + 1e-9))
            let before = expected
            if percent > 30 + 1e-9 { expected = true } else if percent < 25 - 1e-9 { expected = false }
            expectEqual(change, (before == expected ? nil : expected ? .began : .ended))
        }
    }

    @Test func `begin and end alternate for random results of any rate`() {
        for seed in 0..<50 as Range<UInt64> {
            var (detector, random) = (FlapDetector(), SplitMix64(seed: seed))
            let rate = Double.random(in: 0...1, using: &random)
            let found = changes((0..<1_000).map { _ in Double.random(in: 0..<1, using: &random) < rate }, &detector)
            expectEqual(found, found.indices.map { $0 % 2 == 0 ? .began : .ended }, "seed \(seed)")
        }
    }
}
