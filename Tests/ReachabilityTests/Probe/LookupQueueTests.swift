import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct LookupQueueTests {
    private func request(of target: Int, _ number: UInt64 = 0) -> LookupRequest {
        LookupRequest(id: TargetID(target).firstNumber + number, name: "\(target).example", families: [.v4])
    }

    private func next(_ queue: inout LookupQueue, of generation: Int) -> LookupQueue.Turn {
        queue.next(of: generation, wasIdle: false, timedOut: false)
    }

    @Test func `lookup threads are made as they are needed, up to the limit`() {
        var queue = LookupQueue(threadLimit: 2, queueLimit: 3)
        expectEqual(queue.add(request(of: 1)), .makeThread(generation: 0))
        expectEqual(next(&queue, of: 0), .lookUp(request(of: 1), more: false))
        expectEqual(next(&queue, of: 0), .wait)
        // One thread waits for work already.
        expectEqual(queue.add(request(of: 2)), .wake)
        expectEqual(queue.add(request(of: 3)), .makeThread(generation: 0))
        expectEqual(queue.add(request(of: 4)), .wake)
        expectEqual(queue.add(request(of: 5)), .refuse)
        expectEqual(next(&queue, of: 0), .lookUp(request(of: 2), more: true))
        expectEqual(queue.next(of: 0, wasIdle: true, timedOut: false), .lookUp(request(of: 3), more: true))
        expectEqual(queue.threads, 2)
    }

    @Test func `a target's later lookup replaces its waiting one, and a thread is made beside stuck ones`() {
        var queue = LookupQueue(threadLimit: 1, queueLimit: 9)
        _ = queue.add(request(of: 0))
        expectEqual(next(&queue, of: 0), .lookUp(request(of: 0), more: false))
        expectEqual(queue.add(request(of: 1)), .wake)
        expectEqual(queue.add(request(of: 2)), .wake)
        expectEqual(queue.add(request(of: 1, 7)), .makeThread(generation: 0))
        expectEqual(queue.waiting, [request(of: 1, 7), request(of: 2)])
        // The number of threads is limited.
        for number in 0..<9 { _ = queue.add(request(of: 2, UInt64(number))) }
        expectEqual(queue.threads, 4)
    }

    @Test func `lookup threads that were made beside stuck ones end when no lookup waits`() {
        var queue = LookupQueue(threadLimit: 1, queueLimit: 9)
        for number in 0..<6 { _ = queue.add(request(of: 1, UInt64(number))) }
        expectEqual(queue.threads, 4)
        expectEqual(next(&queue, of: 0), .lookUp(request(of: 1, 5), more: false))
        for _ in 1...3 { expectEqual(next(&queue, of: 0), .end) }
        expectEqual(next(&queue, of: 0), .wait)
        expectEqual(queue.threads, 1)
    }

    @Test func `the waiting lookup of a removed target is dropped`() {
        var queue = LookupQueue(threadLimit: 1, queueLimit: 9)
        _ = queue.add(request(of: 1))
        _ = queue.add(request(of: 2))
        queue.cancel(TargetID(1))
        expectEqual(queue.waiting, [request(of: 2)])
    }

    @Test func `a lookup thread belongs to the generation in which it was counted, even if it starts in the next one`() {
        var queue = LookupQueue(threadLimit: 2, queueLimit: 9)
        expectEqual(queue.add(request(of: 1)), .makeThread(generation: 0))
        expectEqual(queue.beginGeneration(), 1)
        expectEqual(queue.threads, 1)
        expectEqual(queue.formerThreads, 1)
        expectEqual(next(&queue, of: 0), .end)
        expectEqual(queue.threads, 1)
        expectEqual(queue.formerThreads, 0)
        expectEqual(next(&queue, of: 1), .lookUp(request(of: 1), more: false))
    }

    @Test func `lookups that wait for a thread that cannot be made are left to the other threads of its generation`() {
        var queue = LookupQueue(threadLimit: 2, queueLimit: 9)
        _ = queue.add(request(of: 1))
        _ = queue.beginGeneration()
        expectEqual(queue.threadFailed(of: 0), [])
        expectEqual(queue.threads, 1)
        expectEqual(queue.formerThreads, 0)
        expectEqual(queue.threadFailed(of: 1), [request(of: 1)])
        expectEqual(queue.threads, 0)
        expectEqual(queue.waiting, [])
    }

    @Test func `stuck lookup threads stay few however often the configuration changes, and lookups continue`() {
        var queue = LookupQueue(threadLimit: 2, queueLimit: 99)
        var stuck: [Int] = []
        for round in 0..<20 {
            for target in 1...3 {
                guard case .makeThread(let generation) = queue.add(request(of: target, UInt64(round))) else { continue }
                guard case .lookUp = next(&queue, of: generation) else { continue }
                stuck.append(generation)
            }
            #expect(queue.threads + queue.formerThreads <= 8)
            if let generation = queue.beginGeneration(), case .lookUp = next(&queue, of: generation) { stuck.append(generation) }
            #expect(queue.threads + queue.formerThreads <= 8)
        }
        expectEqual(stuck.count, 8)
        // The limit is reached: a name waits until a former thread has ended.
        expectEqual(queue.add(request(of: 9)), .wake)
        expectEqual(next(&queue, of: stuck[0]), .end)
        expectEqual(queue.add(request(of: 9, 1)), .makeThread(generation: queue.generation))
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `no lookup thread is lost or made too often, for random events`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var queue = LookupQueue(threadLimit: 3, queueLimit: 5)
        // The threads of the process: the generation of each, and whether it waits.
        var alive: [(generation: Int, isIdle: Bool)] = []
        for step in 0..<5_000 {
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<4:
                let request = request(of: Int.random(in: 1...9, using: &dice), UInt64(step))
                if case .makeThread(let generation) = queue.add(request) { alive.append((generation, false)) }
            case 4: queue.cancel(TargetID(Int.random(in: 1...9, using: &dice)))
            case 5: if let generation = queue.beginGeneration() { alive.append((generation, false)) }
            default:
                guard let place = alive.indices.randomElement(using: &dice) else { continue }
                let timedOut = alive[place].isIdle && Bool.random(using: &dice)
                switch queue.next(of: alive[place].generation, wasIdle: alive[place].isIdle, timedOut: timedOut) {
                case .lookUp: alive[place].isIdle = false
                case .wait: alive[place].isIdle = true
                case .end: alive.remove(at: place)
                }
            }
            let present = alive.count { $0.generation == queue.generation }
            guard present == queue.threads, alive.count - present == queue.formerThreads, alive.count <= 12,
                queue.waiting.count <= 5
            else {
                Issue.record("seed \(seed), step \(step): \(queue), \(alive)")
                return
            }
        }
    }
}
