import Expectations
import Pacing
import Testing

@Suite struct CostBucketTests {
    /// Returns the times at which units that are wanted all the time begin.
    private func begins(_ count: Int, interval: Int64, burst: Int64) -> [Int64] {
        var bucket = CostBucket(interval: interval, burst: burst)
        var now: Int64 = 1_000
        return (0..<count).map { _ in
            now = max(now, bucket.readyAt)
            bucket.spend(interval, at: now)
            return now - 1_000
        }
    }

    @Test func `a burst begins at once, and further units each interval`() {
        expectEqual(begins(6, interval: 20, burst: 3), [0, 0, 0, 20, 40, 60])
        expectEqual(begins(3, interval: 20, burst: 0), [0, 20, 40])
    }

    @Test func `a pause restores the burst, and no more than it`() {
        var bucket = CostBucket(interval: 20, burst: 2)
        for _ in 0..<2 { bucket.spend(20, at: 0) }
        #expect(bucket.readyAt == 20 && !bucket.isPaid(at: 39) && bucket.isPaid(at: 40))
        for _ in 0..<2 { bucket.spend(20, at: 1_000_000) }
        expectEqual(bucket.readyAt, 1_000_020)
    }

    @Test func `work whose cost is known at its end delays the next`() {
        var bucket = CostBucket(allowance: 100)
        #expect(bucket.readyAt <= 0)
        bucket.spend(350, at: 0)
        expectEqual(bucket.readyAt, 250)
        bucket.spend(-5, at: 250)
        expectEqual(bucket.readyAt, 250)
        bucket.spend(.max, at: 300)
        #expect(bucket.readyAt > 1 << 60 && !bucket.isPaid(at: .max - 1))
    }
}
