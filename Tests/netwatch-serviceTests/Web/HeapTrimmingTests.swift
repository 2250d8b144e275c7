import Expectations
import Testing

@testable import netwatch_service

@Suite struct HeapTrimmingTests {
    /// The checks after which the heap is trimmed. - Parameter ends: the number of connections that end before each check.
    private func trims(_ ends: [Int]) -> [Int] {
        var (trimming, count) = (HeapTrimming(), 0)
        return ends.indices.filter { index in
            count += ends[index]
            return trimming.isDue(ended: count)
        }
    }

    private func none(_ checks: Int) -> [Int] { Array(repeating: 0, count: checks) }

    @Test func `the heap is trimmed once, ten checks after the last of many connections has ended`() {
        expectEqual(trims([0, 500, 100, 1] + none(200)), [13])
        expectEqual(trims([500] + none(9) + [1] + none(200)), [20])
    }

    @Test func `it follows each burst`() {
        expectEqual(trims([512] + none(40) + [64] + none(40)), [10, 51])
    }

    @Test func `few connections cause no trimming, and are counted together`() {
        expectEqual(trims([63] + none(1_000)), [])
        expectEqual(trims([63] + none(500) + [1] + none(500)), [511])
    }

    @Test func `connections that never cease to end do not delay it for longer than 60 checks`() {
        expectEqual(trims(Array(repeating: 2, count: 200)), [90, 181])
        expectEqual(trims(Array(repeating: 1, count: 200)), [122])
    }
}
