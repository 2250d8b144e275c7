import Expectations
import Pacing
import Testing

@Suite struct TokenBucketTests {
    @Test func `the burst is granted at once, then one token per interval`() {
        var bucket = TokenBucket(intervalNanoseconds: 50, burst: 20)
        expectEqual((0..<25).count { _ in bucket.take(now: 7) }, 20)
        expectEqual(bucket.take(now: 56), false)
        expectEqual(bucket.take(now: 57), true)
        expectEqual(bucket.take(now: 57), false)
        expectEqual((0..<25).count { _ in bucket.take(now: 257) }, 4)
        expectEqual((0..<25).count { _ in bucket.take(now: 10_000) }, 20)
    }

    @Test func `a burst below one grants one token, and times at the limits do not overflow`() {
        var bucket = TokenBucket(intervalNanoseconds: .max, burst: 0)
        expectEqual([bucket.take(now: .max - 1), bucket.take(now: .max - 1), bucket.take(now: .max)], [true, false, true])
        var free = TokenBucket(intervalNanoseconds: -1, burst: 1)
        expectEqual((0..<3).count { _ in free.take(now: .min) }, 3)
    }
}
