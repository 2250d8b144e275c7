import Expectations
import Pacing
import Testing

@testable import netwatch_service

@Suite struct RoundTripScaleTests {
    @Test(arguments: [(0, 0), (99, 99), (143, 144), (250, 250), (1_204, 1_200), (1_213, 1_220), (5_237, 5_200), (9_999, 10_000)])
    func `a round trip keeps the digits that matter`(measured: UInt32, recorded: UInt32) {
        expectEqual(Sample(time: 0, state: .up, roundTrip: measured).roundTrip, recorded)
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `each value is within 1.25 %, and its place gives it back`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var last: (value: UInt32, place: UInt32) = (0, 0)
        let values = (0..<20_000).map { _ in UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32)) } + [.max]
        for value in values.sorted() {
            let rounded = RoundTripScale.rounded(value)
            #expect(abs(Double(rounded) - Double(value)) <= Double(value) * 0.0125, "seed \(seed), \(value)")
            expectEqual(RoundTripScale.rounded(rounded), rounded)
            let place = RoundTripScale.place(of: rounded)
            expectEqual(RoundTripScale.value(at: place), rounded, "seed \(seed), \(value)")
            #expect(last.value <= rounded && last.place <= place)
            last = (rounded, place)
        }
        expectNil(RoundTripScale.value(at: .max))
    }
}
