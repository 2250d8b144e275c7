import Expectations
import Pacing
import Testing

@testable import netwatch_service

@Suite struct RoundTripHistogramTests {
    @Test func `without values there are no quantiles`() {
        expectNil(RoundTripHistogram().quantile(0.5))
        expectEqual(RoundTripHistogram().count, 0)
    }

    @Test func `quantiles differ from the exact ones by at most 5 percent`() throws {
        var random = SplitMix64(seed: 11)
        var histogram = RoundTripHistogram()
        var values: [UInt32] = []
        for _ in 0..<5_000 {
            let value = UInt32(1 + random.next() % (1 << (1 + random.next() % 20)))
            values.append(value)
            histogram.add(value)
        }
        values.sort()
        for part in [0.01, 0.25, 0.5, 0.75, 0.95, 0.99] {
            let exact = Double(values[max(0, Int((part * 5_000).rounded(.up)) - 1)])
            let found = Double(try #require(histogram.quantile(part)))
            #expect(abs(found - exact) <= max(1, exact * 0.05), "\(part): \(found) instead of \(exact)")
        }
        expectEqual(histogram.minimum, values.first)
        expectEqual(histogram.maximum, values.last)
        expectEqual(histogram.count, 5_000)
    }

    @Test func `the rank of a quantile is rounded up, so that few values have the higher one`() {
        var histogram = RoundTripHistogram()
        for value in [10, 1_000, 100_000] as [UInt32] { histogram.add(value) }
        // Half of three values are one and a half: the second one is the median.
        let found = [0, 0.3, 0.5, 0.6, 0.7, 1].map { part in histogram.quantile(part).map { $0 < 100 ? 1 : $0 < 10_000 ? 2 : 3 } }
        expectEqual(found, [1, 1, 2, 2, 3, 3])
    }

    @Test func `the sum of two distributions is that of all values`() {
        var (first, second, all) = (RoundTripHistogram(), RoundTripHistogram(), RoundTripHistogram())
        for value in [3, 100, 5_000, 0, .max] as [UInt32] {
            first.add(value)
            all.add(value)
        }
        for value in [7, 100, 90] as [UInt32] {
            second.add(value)
            all.add(value)
        }
        first.add(second)
        expectEqual(first, all)
        first.add(RoundTripHistogram())
        expectEqual(first, all)
    }
}
