import Pacing
import Testing

@Suite struct LeadingEdgeTests {
    @Test func `the first request runs at once, the second after the interval, a late third at once`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        #expect(limiter.request(now: 7) == .now)
        #expect(limiter.request(now: 50) == .at(107))
        #expect(limiter.isDue(now: 106) == false)
        #expect(limiter.isDue(now: 107) == true)
        #expect(limiter.isDue(now: 107) == false)
        #expect(limiter.request(now: 207) == .now)
    }

    @Test func `requests during a pending run neither move it nor add a run`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        #expect(limiter.request(now: 0) == .now)
        for now in stride(from: Int64(1), to: 100, by: 1) { #expect(limiter.request(now: now) == .at(100)) }
        #expect(limiter.isDue(now: 100) == true)
        #expect(limiter.pending == nil)
    }

    @Test func `a request after the deadline runs at once and replaces the pending run`() {
        var limiter = LeadingEdge(intervalNanoseconds: 100)
        #expect(limiter.request(now: 0) == .now)
        #expect(limiter.request(now: 10) == .at(100))
        #expect(limiter.request(now: 130) == .now)
        #expect(limiter.isDue(now: 140) == false)
        #expect(limiter.request(now: 140) == .at(230))
    }

    @Test func `without an interval every request runs`() {
        var limiter = LeadingEdge(intervalNanoseconds: -1)
        #expect(limiter.request(now: 5) == .now)
        #expect(limiter.request(now: 5) == .now)
    }

    @Test func `an interval beyond the end of time never becomes due`() {
        var limiter = LeadingEdge(intervalNanoseconds: .max)
        #expect(limiter.request(now: 5) == .now)
        #expect(limiter.request(now: 6) == .at(.max))
    }
}
