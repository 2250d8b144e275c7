import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct SmallCollectionsTests {
    @Test(arguments: 0..<20) func `random changes of a small map give the entries of a dictionary`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (map, expected) = (SmallMap<Int, Int>(), [Int: Int]())
        for step in 0..<500 {
            let key = Int.random(in: 0..<4, using: &random)
            let value = Bool.random(using: &random) ? step : nil
            (map[key], expected[key]) = (value, value)
            #expect(map.count == expected.count && map.isEmpty == expected.isEmpty, "seed \(seed), step \(step)")
            #expect((0..<4).allSatisfy { map[$0] == expected[$0] }, "seed \(seed), step \(step)")
            expectEqual(map.values.sorted(), expected.values.sorted(), "seed \(seed), step \(step)")
        }
    }

    @Test func `maps with the same entries in another order are equal and have the same hash`() {
        var (one, other): (SmallMap<Int, String>, SmallMap<Int, String>) = ([1: "a", 2: "b"], [2: "b", 1: "a"])
        #expect(one == other && one.hashValue == other.hashValue)
        other[2] = "c"
        #expect(one != other)
        one[1] = nil
        #expect(one == [2: "b"] && one.filter { $0.key == 1 }.isEmpty)
    }

    @Test func `a set of interfaces has each index once, in order, and no index 0`() {
        expectEqual(Array(InterfaceSet([7, 3, 0, 7, 5])), [3, 5, 7])
        expectEqual(InterfaceSet([3, 7]), InterfaceSet([7, 3, 3]))
        #expect(Array(InterfaceSet([4])) == [4] && InterfaceSet([4]) != InterfaceSet())
        #expect(InterfaceSet().isEmpty && InterfaceSet([0]).isEmpty && !InterfaceSet([1]).isEmpty)
    }

    @Test func `one entry takes the bytes of its key and value`() {
        #expect(MemoryLayout<SmallMap<IPAddress, ChosenRoute>>.size <= 33)
        expectEqual(MemoryLayout<InterfaceSet>.size, 16)
    }
}
