import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct TargetSetTests {
    @Test func `a set has the ranges of its numbers, whatever their order`() {
        #expect(TargetSet().ranges.isEmpty && TargetSet().isEmpty)
        expectEqual(TargetSet([5, 3, 4, 3, 64, 63, 200, -1]).ranges, [3..<6, 63..<65, 200..<201])
        expectEqual(TargetSet(0..<256).ranges, [0..<256])
        expectEqual(TargetSet([200, 4]), TargetSet([4, 200]))
        expectEqual(TargetSet([200, 4]).hashValue, TargetSet([4, 200]).hashValue)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `a set is the set of its numbers`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (set, expected) = (TargetSet(), Set<Int>())
        for _ in 0..<300 {
            let number = Int(random.next() % (seed % 2 == 0 ? 400 : 100_000))
            set.insert(number)
            expected.insert(number)
        }
        #expect(set.count == expected.count && Array(set.numbers) == expected.sorted())
        #expect((0..<400).allSatisfy { set.contains($0) == expected.contains($0) } && !set.contains(-1))
        let first = Int(random.next() % 500)
        let range = first..<first + Int(random.next() % 300)
        set.insert(contentsOf: range)
        expected.formUnion(range)
        #expect(set.count == expected.count && Array(set.numbers) == expected.sorted(), "\(range)")
        var union = TargetSet([7])
        union.formUnion(set)
        expectEqual(Set(union.numbers), expected.union([7]))
    }
}
