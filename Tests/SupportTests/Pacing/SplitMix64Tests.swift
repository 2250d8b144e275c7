import Expectations
import Pacing
import Testing

@Suite struct SplitMix64Tests {
    @Test func `a seed gives the published numbers`() {
        var random = SplitMix64(seed: 1_234_567)
        let expected: [UInt64] = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ]
        let drawn = expected.map { _ in random.next() }
        expectEqual(drawn, expected)
    }

    @Test func `equal seeds give equal numbers, others do not`() {
        var (one, same, other) = (SplitMix64(seed: 1), SplitMix64(seed: 1), SplitMix64(seed: 2))
        let numbers = (0..<100).map { _ in one.next() }
        let sames = (0..<100).map { _ in same.next() }
        let others = (0..<100).map { _ in other.next() }
        expectEqual(numbers, sames)
        #expect(numbers != others)
    }
}
