import Pacing
import Testing

@Suite struct BackoffTests {
    @Test func `the greatest draws double up to the cap, and a success starts over`() {
        var backoff = Backoff(baseNanoseconds: 100, capNanoseconds: 1000)
        let waits = (1...6).map { _ in backoff.next(draw: .max) }
        #expect(waits == [100, 200, 400, 800, 1000, 1000])
        #expect(backoff.attempts == 6)
        backoff.reset()
        #expect(backoff.next(draw: .max) == 100)
    }

    @Test func `the wait is as far between zero and the ceiling as the draw is between its ends`() {
        var backoff = Backoff(baseNanoseconds: 1000, capNanoseconds: 1000)
        #expect(backoff.next(draw: 0) == 0)
        #expect(backoff.next(draw: .max / 2) == 500)
        #expect(backoff.next(draw: .max) == 1000)
    }

    @Test(arguments: [1, 3, 1 << 61, 1 << 62, Int64.max])
    func `no base overflows, however many tries`(base: Int64) {
        var backoff = Backoff(baseNanoseconds: base, capNanoseconds: .max)
        var latest: Int64 = 0
        for _ in 0..<200 {
            #expect(backoff.ceilingNanoseconds >= latest)
            latest = backoff.ceilingNanoseconds
            let wait = backoff.next(draw: .max)
            #expect(wait == latest)
        }
        #expect(latest == .max)
    }

    @Test func `senseless limits are mended`() {
        var backoff = Backoff(baseNanoseconds: -5, capNanoseconds: -7)
        #expect(backoff.next(draw: .max) == 1)
        #expect(backoff.next(draw: .max) == 1)
    }

    @Test func `random draws stay within the ceiling and use its whole width`() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        var backoff = Backoff(baseNanoseconds: 4, capNanoseconds: 4)
        var seen: Set<Int64> = []
        for _ in 0..<1000 { seen.insert(backoff.next(draw: random.next())) }
        #expect(seen == [0, 1, 2, 3, 4], "seed \(seed)")
    }
}
