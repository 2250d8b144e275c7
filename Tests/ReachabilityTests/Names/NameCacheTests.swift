import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct NameCacheTests {
    private static let second: Int64 = 1_000_000_000

    private func entry(ttl: UInt32, now: Int64 = 0) -> NameCache.Entry {
        NameCache.Entry(
            addresses: [IPAddress(v4: 1)], received: now, expiry: NameCache.expiry(ttl: ttl, now: now), candidate: "a")
    }

    @Test func `an entry is used until its TTL has passed`() {
        var cache = NameCache()
        cache.store(entry(ttl: 10), "a", .v4, now: 0)
        #expect(cache.entry("a", .v4, now: 10 * Self.second - 1) != nil)
        expectNil(cache.entry("a", .v4, now: 10 * Self.second))
        expectNil(cache.entry("a", .v6, now: 0))
        expectNil(cache.entry("b", .v4, now: 0))
    }

    @Test func `a TTL is at least one second and at most five minutes`() {
        expectEqual(NameCache.expiry(ttl: 0, now: 5), Self.second + 5)
        expectEqual(NameCache.expiry(ttl: .max, now: 0), 300 * Self.second)
    }

    @Test func `expired names are removed, and a full cache takes no new names`() {
        var cache = NameCache()
        for number in 0..<2_000 { cache.store(entry(ttl: 1), "old\(number)", .v4, now: 0) }
        for number in 0..<2_000 { cache.store(entry(ttl: 300), "new\(number)", .v4, now: 2 * Self.second) }
        #expect(cache.count <= 3_000)
        for number in 0..<NameCache.limit + 10 { cache.store(entry(ttl: 300), "n\(number)", .v6, now: 2 * Self.second) }
        expectEqual(cache.count, NameCache.limit)
        cache.store(entry(ttl: 200), "new1", .v6, now: 2 * Self.second)
        #expect(cache.entry("new1", .v6, now: 2 * Self.second) != nil)
    }
}

@Suite struct NameTimersTests {
    @Test func `items come in the order of their times`() {
        var generator = SplitMix64(seed: 3)
        var timers = NameTimers<Int>()
        let times = (0..<500).map { _ in Int64.random(in: 0..<100, using: &generator) }
        for (item, time) in times.enumerated() { timers.add(item, at: time) }
        var removed: [Int64] = []
        for now in 0..<100 as Range<Int64> {
            #expect(timers.first ?? .max >= now)
            while let item = timers.removeFirst(dueAt: now) {
                expectEqual(times[item], now)
                removed.append(times[item])
            }
        }
        expectEqual(removed, times.sorted())
        expectNil(timers.first)
    }
}

@Suite struct SendQueueTests {
    private func question(_ id: UInt64) -> NameQuestion { NameQuestion(id: id, name: "a", family: .v4) }

    @Test func `a burst is limited until answers arrive or 50 ms have passed`() {
        var queue = SendQueue()
        for id in 1...600 as ClosedRange<UInt64> { queue.add(question(id), at: 0) }
        expectEqual(queue.takeSendable(now: 0).map(\.id), Array(1...256))
        expectEqual(queue.takeSendable(now: 1), [])
        expectEqual(queue.deadline, NameTable.burstTime)
        for id in 1...10 as ClosedRange<UInt64> { queue.ended(id) }
        expectEqual(queue.takeSendable(now: 2).map(\.id), Array(257...266))
        expectEqual(queue.takeSendable(now: NameTable.burstTime).map(\.id), Array(267...512))
        expectEqual(queue.takeSendable(now: 2 * NameTable.burstTime).map(\.id), Array(513...600))
        expectNil(queue.deadline)
    }

    @Test func `a question waits until it is sent`() {
        var queue = SendQueue()
        for id in 1...300 as ClosedRange<UInt64> { queue.add(question(id), at: 0) }
        #expect(queue.isWaiting(1))
        _ = queue.takeSendable(now: 0)
        #expect(!queue.isWaiting(256))
        #expect(queue.isWaiting(257))
        _ = queue.takeSendable(now: NameTable.burstTime)
        #expect(!queue.isWaiting(300))
    }

    @Test func `a removed question is not sent`() {
        var queue = SendQueue()
        for id in 1...300 as ClosedRange<UInt64> { queue.add(question(id), at: 0) }
        _ = queue.takeSendable(now: 0)
        queue.remove(290)
        expectEqual(queue.takeSendable(now: NameTable.burstTime).map(\.id), Array(257...289) + Array(291...300))
    }

    @Test func `the number of open questions is limited`() {
        var queue = SendQueue()
        for id in 0..<20_000 as Range<UInt64> { queue.add(question(id), at: 0) }
        var count = 0
        for round in 0..<100 as Range<Int64> { count += queue.takeSendable(now: round * NameTable.burstTime).count }
        expectEqual(count, NameTable.openLimit)
    }
}
