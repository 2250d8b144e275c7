import Expectations
import HTTPSession
import Testing

extension TaskQueue.Host {
    static func named(_ name: String, isResolving: Bool = false) -> TaskQueue.Host {
        TaskQueue.Host(scheme: "https", name: name, port: 443, needsLookup: isResolving)
    }
}

extension TaskQueue {
    /// All tasks that may start now, in order.
    mutating func admitAll(now: Int64 = 0) -> [ID] {
        var admitted: [ID] = []
        while let id = admit(now: now) { admitted.append(id) }
        return admitted
    }
}

@Suite struct TaskQueueTests {
    private let one = TaskQueue.Host.named("one.example")
    private let other = TaskQueue.Host.named("other.example")

    private func queue(total: Int = 10, perHost: Int = 10, lookups: Int = 8) -> TaskQueue {
        TaskQueue(limits: .init(total: total, perHost: perHost, lookups: lookups, lookupLifetime: 60, abandonedLookup: 10))
    }

    @Test func `tasks start by priority, then in order of arrival`() {
        var queue = queue()
        queue.add(1, to: one, priority: .low)
        queue.add(2, to: one, priority: .default)
        queue.add(3, to: one, priority: .high)
        queue.add(4, to: one, priority: .default)
        queue.add(5, to: one, priority: .high)
        expectEqual(queue.admitAll(), [3, 5, 2, 4, 1])
        expectEqual(queue.waiting, 0)
        expectEqual(queue.running, 5)
    }

    @Test func `a suspended transfer yields its place to a task that waits for it, and still counts for the total`() {
        var queue = queue(total: 4, perHost: 2)
        for id in [1, 2, 3] as [UInt64] { queue.add(id, to: one, priority: .default) }
        expectEqual(queue.admitAll(), [1, 2])
        #expect(queue.isWanted(one) && queue.isWanted(one.exclusive) && !queue.isWanted(other))
        let hasYielded = queue.yield(1, from: one)
        #expect(hasYielded)
        expectEqual(queue.admitAll(), [3])
        #expect(!queue.isWanted(one))
        for id in [4, 5] as [UInt64] { queue.add(id, to: one, priority: .default) }
        #expect(queue.isWanted(one))
        _ = queue.yield(2, from: one)
        expectEqual(queue.admitAll(), [4])
        // Four connections exist, two of them without a place.
        #expect(!queue.isWanted(one) && queue.running == 2 && queue.yielded == 2)
        expectEqual(queue.admitAll(), [])
        queue.releaseYielded()
        #expect(queue.isWanted(one))
        queue.release(3, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [5])
    }

    @Test func `a task that has begun starts before others of its priority`() {
        var queue = queue(perHost: 1)
        queue.add(1, to: one, priority: .default)
        queue.add(2, to: one, priority: .default)
        queue.add(9, to: one, priority: .default, isFirst: true)
        queue.add(8, to: one, priority: .high)
        expectEqual(queue.admitAll(), [8])
        queue.release(8, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [9])
        queue.add(7, to: one, priority: .default, isFirst: true)
        queue.release(9, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [7])
    }

    @Test func `the limits per host and in total hold`() {
        var queue = queue(total: 3, perHost: 2)
        for id: UInt64 in 1...4 { queue.add(id, to: one, priority: .default) }
        for id: UInt64 in 11...14 { queue.add(id, to: other, priority: .default) }
        expectEqual(queue.admitAll(), [1, 11, 2])
        queue.release(1, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [12])
        queue.release(2, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [3])
    }

    @Test func `a host with a long line does not delay others`() {
        var queue = queue(total: 2)
        for id: UInt64 in 1...100 { queue.add(id, to: one, priority: .default) }
        queue.add(200, to: other, priority: .default)
        expectEqual(queue.admitAll(), [1, 200])
    }

    @Test func `a full host does not delay a less urgent task of another host`() {
        var queue = queue(perHost: 1)
        queue.add(1, to: one, priority: .high)
        queue.add(2, to: one, priority: .high)
        queue.add(3, to: other, priority: .low)
        expectEqual(queue.admitAll(), [1, 3])
    }

    @Test func `a host that speaks HTTP/2 allows more running tasks`() {
        var queue = queue(total: 100, perHost: 2)
        for id: UInt64 in 1...5 { queue.add(id, to: one, priority: .default) }
        expectEqual(queue.admitAll(), [1, 2])
        queue.setMultiplexed(one)
        expectEqual(queue.admitAll(), [3, 4, 5])
    }

    @Test func `a host that falls back to HTTP/1 has the usual limit again`() {
        var queue = queue(total: 100, perHost: 2)
        queue.add(1, to: one, priority: .default)
        expectEqual(queue.admitAll(), [1])
        queue.setMultiplexed(one)
        queue.release(1, from: one, isAbandoned: false, now: 0)
        queue.setMultiplexed(one, false)
        #expect(queue.sharesConnections(one))
        for id: UInt64 in 2...5 { queue.add(id, to: one, priority: .default) }
        expectEqual(queue.admitAll(), [2, 3])
    }

    @Test func `after a change of networks, one task for each host resolves its name again`() {
        var queue = queue()
        let named = TaskQueue.Host.named("named.example", isResolving: true)
        queue.add(1, to: named, priority: .default)
        expectEqual(queue.admitAll(), [1])
        queue.nameResolved(1, to: named, now: 5)
        queue.invalidateNames()
        for id: UInt64 in 2...4 { queue.add(id, to: named, priority: .default) }
        expectEqual(queue.admitAll(), [2])
    }

    @Test func `tasks with connections of their own leave one connection to the others of an HTTP/2 host`() {
        var queue = queue(total: 100, perHost: 3)
        queue.add(1, to: one, priority: .default)
        expectEqual(queue.admitAll(), [1])
        for id: UInt64 in 11...14 { queue.add(id, to: one.exclusive, priority: .default) }
        expectEqual(queue.admitAll(), [11, 12])
        queue.add(2, to: one, priority: .default)
        expectEqual(queue.admitAll(), [])
        queue.setMultiplexed(one)
        expectEqual(queue.admitAll(), [2])
        queue.release(1, from: one, isAbandoned: false, now: 0)
        queue.release(2, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [13])
        queue.add(3, to: one, priority: .default)
        expectEqual(queue.admitAll(), [3])
    }

    @Test func `one task resolves a name while others of its host wait`() {
        var queue = queue()
        let named = TaskQueue.Host.named("named.example", isResolving: true)
        for id: UInt64 in 1...3 { queue.add(id, to: named, priority: .default) }
        expectEqual(queue.admitAll(), [1])
        queue.nameResolved(1, to: named, now: 5)
        expectEqual(queue.admitAll(now: 5), [2, 3])
        queue.add(4, to: named, priority: .default)
        expectEqual(queue.admitAll(now: 64), [4])
        queue.add(5, to: named, priority: .default)
        queue.add(6, to: named, priority: .default)
        expectEqual(queue.admitAll(now: 65), [5])
    }

    @Test func `after a failed lookup the next task resolves the name`() {
        var queue = queue()
        let named = TaskQueue.Host.named("named.example", isResolving: true)
        queue.add(1, to: named, priority: .default)
        queue.add(2, to: named, priority: .default)
        expectEqual(queue.admitAll(), [1])
        queue.release(1, from: named, isAbandoned: false, now: 1)
        expectEqual(queue.admitAll(now: 1), [2])
        expectNil(queue.deadline)
    }

    @Test func `lookups are limited, and abandoned ones count for their time`() {
        var queue = queue(lookups: 2)
        let hosts = (0..<5).map { TaskQueue.Host.named("h\($0).example", isResolving: true) }
        for (index, host) in hosts.enumerated() { queue.add(UInt64(index), to: host, priority: .default) }
        queue.add(99, to: one, priority: .low)
        expectEqual(queue.admitAll(), [0, 1, 99])
        queue.release(0, from: hosts[0], isAbandoned: true, now: 100)
        queue.release(1, from: hosts[1], isAbandoned: true, now: 103)
        expectEqual(queue.admitAll(now: 104), [])
        expectEqual(queue.deadline, 110)
        expectEqual(queue.admitAll(now: 110), [2])
        expectEqual(queue.admitAll(now: 113), [3])
    }

    @Test func `a task removed from the queue is not started`() {
        var queue = queue(perHost: 1)
        for id: UInt64 in 1...4 { queue.add(id, to: one, priority: .default) }
        expectEqual(queue.remove(1), true)
        expectEqual(queue.remove(3), true)
        expectEqual(queue.remove(3), false)
        expectEqual(queue.remove(77), false)
        expectEqual(queue.waiting, 2)
        expectEqual(queue.admitAll(), [2])
        queue.release(2, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [4])
    }

    @Test func `a task removed, added and removed again is not started`() {
        var queue = queue(perHost: 1)
        queue.add(1, to: one, priority: .default)
        queue.add(2, to: one, priority: .default)
        for _ in 0..<3 {
            queue.remove(2)
            queue.add(2, to: one, priority: .default)
        }
        queue.remove(2)
        expectEqual(queue.admitAll(), [1])
        queue.release(1, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [])
        expectEqual(queue.running, 0)
    }

    @Test func `a task removed and added again before the others is started`() {
        var queue = queue(perHost: 1)
        for id: UInt64 in 1...3 { queue.add(id, to: one, priority: .default) }
        expectEqual(queue.remove(2), true)
        queue.add(2, to: one, priority: .default, isFirst: true)
        expectEqual(queue.remove(3), true)
        expectEqual(queue.admitAll(), [2])
        queue.release(2, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [1])
        queue.release(1, from: one, isAbandoned: false, now: 0)
        expectEqual(queue.admitAll(), [])
        expectEqual(queue.waiting, 0)
    }

    @Test func `adding a waiting task moves it`() {
        var queue = queue()
        queue.add(1, to: one, priority: .low)
        queue.add(1, to: other, priority: .high)
        expectEqual(queue.waiting, 1)
        expectEqual(queue.admitAll(), [1])
    }

    @Test func `thousands of hosts without tasks are removed, and the others keep working`() {
        var queue = queue(total: 1)
        for number: UInt64 in 0..<3_000 {
            let host = TaskQueue.Host.named("h\(number)")
            queue.add(number, to: host, priority: .default)
            expectEqual(queue.admitAll(), [number])
            queue.release(number, from: host, isAbandoned: false, now: 0)
        }
        expectEqual(queue.running, 0)
    }

    @Test func `an abandoned lookup that has expired sets no deadline, even if all slots are taken`() {
        var queue = queue(total: 1, lookups: 1)
        let named = TaskQueue.Host.named("named.example", isResolving: true)
        queue.add(1, to: named, priority: .default)
        expectEqual(queue.admitAll(now: 0), [1])
        queue.release(1, from: named, isAbandoned: true, now: 0)
        queue.add(2, to: one, priority: .default)
        queue.add(3, to: one, priority: .default)
        expectEqual(queue.admitAll(now: 1), [2])
        expectEqual(queue.deadline, 10)
        expectEqual(queue.admitAll(now: 10), [])
        expectNil(queue.deadline)
    }
}
