import Expectations
import Pacing
import Testing

@Suite struct LeadingEdgeTests {
    @Test func `the first request runs at once, the second after the interval, a late third at once`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        expectEqual(limiter.request(now: 7), .now)
        expectEqual(limiter.request(now: 50), .at(107))
        expectEqual(limiter.isDue(now: 106), false)
        expectEqual(limiter.isDue(now: 107), true)
        expectEqual(limiter.isDue(now: 107), false)
        expectEqual(limiter.request(now: 207), .now)
    }

    @Test func `requests during a pending run neither move it nor add a run`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        expectEqual(limiter.request(now: 0), .now)
        for now in stride(from: Int64(1), to: 100, by: 1) { expectEqual(limiter.request(now: now), .at(100)) }
        expectEqual(limiter.isDue(now: 100), true)
        expectNil(limiter.pending)
    }

    @Test func `a request after the deadline runs at once and replaces the pending run`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        expectEqual(limiter.request(now: 0), .now)
        expectEqual(limiter.request(now: 10), .at(100))
        expectEqual(limiter.request(now: 130), .now)
        expectEqual(limiter.isDue(now: 140), false)
        expectEqual(limiter.request(now: 140), .at(230))
    }

    @Test func `without an interval every request runs`() {
        var limiter = LeadingEdge(intervalNanoseconds: -1)
        expectEqual(limiter.request(now: 5), .now)
        expectEqual(limiter.request(now: 5), .now)
    }

    @Test func `an interval beyond the end of time never becomes due`() {
        var limiter = LeadingEdge(intervalNanoseconds: .max)
        expectEqual(limiter.request(now: 5), .now)
        expectEqual(limiter.request(now: 6), .at(.max))
    }
}
