import Expectations
import Pacing
import Testing

@Suite struct BackoffTests {
    @Test func `the longest waits double up to the cap, and a success resets them`() {
        var backoff = Backoff(baseNanoseconds: 100, capNanoseconds: 1000)
        let waits = (1...6).map { _ in backoff.next(draw: .max) }
        expectEqual(waits, [100, 200, 400, 800, 1000, 1000])
        expectEqual(backoff.attempts, 6)
        backoff.reset()
        expectEqual(backoff.next(draw: .max), 100)
    }

    @Test func `the wait scales linearly with the draw`() {
        var backoff = Backoff(baseNanoseconds: 1000, capNanoseconds: 1000)
        expectEqual(backoff.next(draw: 0), 0)
        expectEqual(backoff.next(draw: .max / 2), 500)
        expectEqual(backoff.next(draw: .max), 1000)
    }

    @Test(arguments: [1, 3, 1 << 61, 1 << 62, Int64.max])
    func `no base overflows after any number of attempts`(base: Int64) {
        var backoff = Backoff(baseNanoseconds: base, capNanoseconds: .max)
        var latest: Int64 = 0
        for _ in 0..<200 {
            #expect(backoff.ceilingNanoseconds >= latest)
            latest = backoff.ceilingNanoseconds
            let wait = backoff.next(draw: .max)
            expectEqual(wait, latest)
        }
        expectEqual(latest, .max)
    }

    @Test func `invalid limits are corrected`() {
        var backoff = Backoff(baseNanoseconds: -5, capNanoseconds: -7)
        expectEqual(backoff.next(draw: .max), 1)
        expectEqual(backoff.next(draw: .max), 1)
    }

    @Test func `random waits cover the range from zero to the ceiling`() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        var backoff = Backoff(baseNanoseconds: 4, capNanoseconds: 4)
        var seen: Set<Int64> = []
        for _ in 0..<1000 { seen.insert(backoff.next(draw: random.next())) }
        expectEqual(seen, [0, 1, 2, 3, 4], "seed \(seed)")
    }
}
