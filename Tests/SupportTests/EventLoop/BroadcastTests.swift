import Dispatch
import Expectations
import Testing

@testable import EventLoop

/// A number with the count of merged values.
private struct Count: Coalescing, Equatable {
    var value: Int
    var missed = 0
    var isFirst = false

    func merged(after earlier: Count) -> Count {
        Count(value: value, missed: missed + earlier.missed + 1, isFirst: isFirst || earlier.isFirst)
    }
    func asInitial() -> Count { Count(value: value, isFirst: true) }
}

@Suite struct BroadcastTests {
    @Test func `the latest value comes first, marked as initial`() async {
        let broadcast = Broadcast<Count>()
        broadcast.publish(Count(value: 1))
        let subscription = broadcast.subscribe()
        await expectEqual(subscription.next(), Count(value: 1, isFirst: true))
    }

    @Test func `a slow reader receives one merged value for all that it missed`() async {
        let broadcast = Broadcast<Count>()
        let subscription = broadcast.subscribe()
        for value in 1...5 { broadcast.publish(Count(value: value)) }
        await expectEqual(subscription.next(), Count(value: 5, missed: 4))
    }

    @Test func `each subscriber has its own slot`() async {
        let broadcast = Broadcast<Count>()
        let (fast, slow) = (broadcast.subscribe(), broadcast.subscribe())
        broadcast.publish(Count(value: 1))
        await expectEqual(fast.next(), Count(value: 1))
        broadcast.publish(Count(value: 2))
        await expectEqual(fast.next(), Count(value: 2))
        await expectEqual(slow.next(), Count(value: 2, missed: 1))
    }

    @Test func `canceling the task ends a waiting reader`() async {
        let broadcast = Broadcast<Count>()
        let subscription = broadcast.subscribe()
        let reader = Task { await subscription.next() }
        reader.cancel()
        await expectNil(reader.value)
    }

    @Test func `the available value is delivered before the end`() async {
        let broadcast = Broadcast<Count>()
        let subscription = broadcast.subscribe()
        broadcast.publish(Count(value: 1))
        broadcast.finish()
        await expectEqual(subscription.next(), Count(value: 1))
        await expectNil(subscription.next())
        await expectEqual(broadcast.subscribe().next()?.value, 1)
    }

    @Test func `a subscription without the latest value starts empty`() {
        let broadcast = Broadcast(Count(value: 1))
        let subscription = broadcast.subscribe(includingLatest: false)
        #expect(!subscription.hasValue && broadcast.subscriberCount == 1)
        broadcast.publish(Count(value: 2))
        expectEqual(subscription.take(), Count(value: 2))
    }

    @Test func `callbacks never overlap on a concurrent queue, and the last value is delivered`() async {
        let broadcast = Broadcast<Count>()
        let seen = Seen()
        let queue = DispatchQueue(label: "concurrent", attributes: .concurrent)
        let callback = broadcast.call {
            seen.call($0.value)
        } by: {
            queue.async(execute: $0)
        }
        for value in 1...10_000 { broadcast.publish(Count(value: value)) }
        await expectEqual(seen.wait(for: 10_000), 1)
        callback.end()
    }

    @Test func `a callback receives the latest value, coalesced values, and its final value`() {
        let broadcast = Broadcast(Count(value: 1))
        let jobs = Locked<[@Sendable () -> Void]>([])
        let seen = Seen()
        let callback = broadcast.call {
            seen.call($0.value)
        } by: { job in
            jobs.withLock { $0.append(job) }
        }
        let run = { for job in jobs.withLock({ $0 }) { job() } }
        run()
        expectEqual(seen.last, 1)
        broadcast.publish(Count(value: 2))
        broadcast.publish(Count(value: 3))
        // One job for both values.
        expectEqual(jobs.withLock { $0.count }, 2)
        run()
        expectEqual(seen.last, 3)
        broadcast.publish(Count(value: 4))
        callback.end(with: Count(value: 5))
        run()
        #expect(seen.last == 5 && broadcast.subscriberCount == 0)
    }
}

/// The last value that a callback received, and the maximum number of concurrent calls.
private final class Seen: Sendable {
    private struct State: Sendable {
        var last = 0
        var running = 0
        var most = 0
        var waiter: (Int, CheckedContinuation<Int, Never>)?
    }

    private let state = Locked(State())

    var last: Int { state.withLock { $0.last } }

    func call(_ value: Int) {
        state.withLock { state in
            state.running += 1
            state.most = max(state.most, state.running)
        }
        let waiter = state.withLock { state -> (CheckedContinuation<Int, Never>, Int)? in
            state.running -= 1
            state.last = value
            guard let waiter = state.waiter, waiter.0 == value else { return nil }
            state.waiter = nil
            return (waiter.1, state.most)
        }
        if let waiter { waiter.0.resume(returning: waiter.1) }
    }

    /// Waits until the value has been received. Returns the maximum number of concurrent calls.
    func wait(for value: Int) async -> Int {
        await withCheckedContinuation { continuation in
            let most = state.withLock { state -> Int? in
                if state.last == value { return state.most }
                state.waiter = (value, continuation)
                return nil
            }
            if let most { continuation.resume(returning: most) }
        }
    }
}
