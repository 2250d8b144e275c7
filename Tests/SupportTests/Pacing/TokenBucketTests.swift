import Expectations
import Pacing
import Testing

@Suite struct TokenBucketTests {
    @Test func `the burst is granted at once, then one token per interval`() {
        var bucket = TokenBucket(intervalNanoseconds: 50, burst: 20)
        expectEqual((0..<25).count { _ in bucket.consume(now: 7) }, 20)
        expectEqual(bucket.consume(now: 56), false)
        expectEqual(bucket.consume(now: 57), true)
        expectEqual(bucket.consume(now: 57), false)
        expectEqual((0..<25).count { _ in bucket.consume(now: 257) }, 4)
        expectEqual((0..<25).count { _ in bucket.consume(now: 10_000) }, 20)
    }

    @Test func `a burst below one grants one token, and times at the limits do not overflow`() {
        var bucket = TokenBucket(intervalNanoseconds: .max, burst: 0)
        expectEqual(
            [bucket.consume(now: .max - 1), bucket.consume(now: .max - 1), bucket.consume(now: .max)], [true, false, true])
        var free = TokenBucket(intervalNanoseconds: -1, burst: 1)
        expectEqual((0..<3).count { _ in free.consume(now: .min) }, 3)
    }
}
