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
        #expect(changes(Array(repeating: true, count: 50), &detector).isEmpty)
        #expect(changes([false] + Array(repeating: true, count: 10), &detector).isEmpty)
        #expect(changes(Array(repeating: false, count: 30) + Array(repeating: true, count: 30), &detector).isEmpty)
        #expect(detector.percent == 0)
    }

    @Test func `flapping begins at the sixth alternation and is reported once`() {
        var detector = FlapDetector()
        #expect(detector.record(true) == nil)
        #expect(changes([false, true, false, true, false], &detector).isEmpty)
        #expect(detector.percent == 29 && !detector.isFlapping)
        #expect(detector.record(true) == .began)
        #expect(detector.percent == 35 && detector.isFlapping)
        #expect(changes((0..<40).map { $0 % 2 == 1 }, &detector).isEmpty)
        #expect(detector.percent == 100)
    }

    @Test func `flapping ends below 25 percent and is reported once`() {
        var detector = FlapDetector()
        _ = changes((0..<40).map { $0 % 2 == 0 }, &detector)
        // Of 20 differences, the oldest n with the weights 0.75, 0.776, … remain. Six of them are 24.5 %, seven 29 %.
        #expect(changes(Array(repeating: false, count: 13), &detector).isEmpty)
        #expect(detector.percent == 29)
        #expect(detector.record(false) == .ended)
        #expect(detector.percent == 24)
        #expect(changes(Array(repeating: false, count: 40), &detector).isEmpty)
        #expect(detector.percent == 0)
    }

    @Test func `a difference each four results does not begin flapping, and one each three results does not end it`() {
        var (steady, flapping) = (FlapDetector(), FlapDetector())
        // Five differences of 20 are 24 to 28 %, six or seven are 28 to 37 %.
        #expect(changes((0..<400).map { $0 / 4 % 2 == 0 }, &steady).isEmpty)
        #expect(changes((0..<20).map { $0 % 2 == 0 }, &flapping) == [.began])
        #expect(changes((0..<400).map { $0 / 3 % 2 == 0 }, &flapping).isEmpty)
    }

    @Test func `the percentage is the weighted sum of the differences of the last 20 results, for random results`() {
        var random = SplitMix64(seed: 14)
        var (detector, results) = (FlapDetector(), [Bool]())
        var expected = false
        for _ in 0..<5_000 {
            results.append(Bool.random(using: &random) || Bool.random(using: &random))
            let change = detector.record(results[results.count - 1])
            let pairs = zip(results.dropFirst(), results).suffix(20).reversed()
            let weight = pairs.enumerated().reduce(0.0) { sum, pair in
                pair.element.0 == pair.element.1 ? sum : sum + 1.25 - 0.5 * Double(pair.offset) / 19
            }
            let percent = weight / 20 * 100
            #expect(detector.percent == Int(percent + 1e-9))
            let before = expected
            if percent > 30 + 1e-9 { expected = true } else if percent < 25 - 1e-9 { expected = false }
            #expect(change == (before == expected ? nil : expected ? .began : .ended))
        }
    }

    @Test func `begin and end alternate for random results of any rate`() {
        for seed in 0..<50 as Range<UInt64> {
            var (detector, random) = (FlapDetector(), SplitMix64(seed: seed))
            let rate = Double.random(in: 0...1, using: &random)
            let found = changes((0..<1_000).map { _ in Double.random(in: 0..<1, using: &random) < rate }, &detector)
            #expect(found == found.indices.map { $0 % 2 == 0 ? .began : .ended }, "seed \(seed)")
        }
    }
}
