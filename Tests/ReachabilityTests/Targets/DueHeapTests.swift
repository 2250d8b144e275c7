import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct DueHeapTests {
    @Test func `the slot with the earliest time is taken first, and equal times in the order of slots`() {
        var heap = DueHeap()
        heap.set(3, due: 20)
        heap.set(1, due: 10)
        heap.set(2, due: 10)
        expectEqual(heap.next, 10)
        expectNil(heap.takeDue(at: 9))
        expectEqual([heap.takeDue(at: 20), heap.takeDue(at: 20), heap.takeDue(at: 20), heap.takeDue(at: 20)], [1, 2, 3, nil])
    }

    @Test func `a slot has one time: a new one replaces it, and nil removes it`() {
        var heap = DueHeap()
        heap.set(0, due: 5)
        heap.set(1, due: 6)
        heap.set(0, due: 7)
        expectEqual(heap.next, 6)
        heap.set(1, due: nil)
        expectEqual(heap.next, 7)
        expectEqual(heap.count, 1)
        expectEqual(heap.due(of: 1), nil)
        heap.set(9, due: nil)
        expectEqual(heap.count, 1)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func `random changes give the order of a sorted list`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var heap = DueHeap()
        var model: [Int: Int64] = [:]
        for step in 0..<3_000 {
            let slot = Int.random(in: 0..<50, using: &dice)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                heap.set(slot, due: nil)
                model[slot] = nil
            case 1:
                let now = Int64.random(in: 0..<1_000, using: &dice)
                let first = model.min { ($0.value, $0.key) < ($1.value, $1.key) }
                let expected = first.flatMap { $0.value <= now ? $0.key : nil }
                expectEqual(heap.takeDue(at: now), expected, "seed \(seed), step \(step)")
                if let expected { model[expected] = nil }
            default:
                let due = Int64.random(in: 0..<1_000, using: &dice)
                heap.set(slot, due: due)
                model[slot] = due
            }
            #expect(heap.next == model.values.min() && heap.count == model.count, "seed \(seed), step \(step)")
        }
    }
}
