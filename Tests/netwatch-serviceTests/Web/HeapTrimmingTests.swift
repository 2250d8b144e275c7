import Testing

@testable import netwatch_service

@Suite struct HeapTrimmingTests {
    /// The checks after which the heap is trimmed. Each pair is a number of open connections, and the number of checks that find it.
    private func trims(_ counts: [(open: Int, checks: Int)]) -> [Int] {
        var trimming = HeapTrimming()
        return counts.flatMap { Array(repeating: $0.open, count: $0.checks) }.enumerated()
            .filter { trimming.isDue(open: $0.element) }.map(\.offset)
    }

    @Test func `the heap is trimmed once, ten checks after many connections have ended`() {
        #expect(trims([(3, 5), (512, 1), (300, 1), (3, 100)]) == [15])
    }

    @Test func `new connections do not delay it`() {
        #expect(trims([(200, 1), (10, 5), (30, 5), (20, 100)]) == [10])
    }

    @Test func `it follows each burst`() {
        #expect(trims([(512, 1), (0, 40), (64, 1), (0, 40)]) == [10, 51])
    }

    @Test func `few connections, and those that replace each other, cause no trimming`() {
        #expect(trims([(63, 1), (0, 100), (63, 1), (0, 100)]) == [])
        #expect(trims(Array(repeating: [(512, 3), (100, 9)], count: 20).flatMap { $0 }) == [])
    }

    @Test func `connections that end one after the other are counted together`() {
        #expect(trims([(64, 1), (40, 20), (10, 20), (1, 20), (0, 20)]) == [70])
    }
}
