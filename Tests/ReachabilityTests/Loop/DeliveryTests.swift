import Dispatch
import EventLoop
import Expectations
import Testing

@testable import Reachability

@Suite struct DeliveryTests {
    private struct Number: Coalescing {
        var value: Int
        func merged(after earlier: Number) -> Number { self }
        func asInitial() -> Number { self }
    }

    @Test func `no callback begins after its token is released`() async {
        let broadcast = Broadcast<Number>()
        let delivery = Delivery()
        let last = Locked(0)
        var token: CallbackToken? = broadcast.deliver(on: nil, through: delivery, keeping: ()) { update in
            last.withLock { $0 = update.value }
        }
        broadcast.publish(Number(value: 1))
        // The delivery thread runs blocks in order: if this block has run, the callback before it has run or never will.
        await withCheckedContinuation { done in delivery.run { done.resume() } }
        expectEqual(last.withLock { $0 }, 1)
        #expect(token != nil)
        token = nil
        broadcast.publish(Number(value: 2))
        await withCheckedContinuation { done in delivery.run { done.resume() } }
        expectEqual(last.withLock { $0 }, 1)
    }

    @Test func `a publisher inside another namespace wakes the delivery thread without the home thread`() throws {
        let (broadcast, delivery) = (Broadcast<Number>(), Delivery())
        let (called, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let token = broadcast.deliver(on: nil, through: delivery, keeping: ()) { _ in called.signal() }
        let publisher = try LoopThread(name: "publisher", namespace: nil) {
            {
                try? HomeThread.leave()
                HomeThread.relay { released.wait() }
                broadcast.publish(Number(value: 1))
            }
        }
        expectEqual(called.wait(timeout: .now() + 60), .success)
        released.signal()
        publisher.join()
        withExtendedLifetime(token) {}
    }

    @Test func `a subscriber inside another namespace leaves the delivery thread to the home thread`() throws {
        let (broadcast, delivery) = (Broadcast<Number>(), Delivery())
        let called = DispatchSemaphore(value: 0)
        let isElsewhere = Locked(true)
        let tokens = Locked<[CallbackToken]>([])
        let subscriber = try LoopThread(name: "subscriber", namespace: nil) {
            {
                try? HomeThread.leave()
                let token = broadcast.deliver(on: nil, through: delivery, keeping: ()) { _ in
                    isElsewhere.withLock { $0 = HomeThread.isElsewhere }
                    called.signal()
                }
                tokens.withLock { $0.append(token) }
                broadcast.publish(Number(value: 1))
            }
        }
        expectEqual(called.wait(timeout: .now() + 60), .success)
        subscriber.join()
        #expect(!isElsewhere.withLock { $0 })
        expectEqual(tokens.withLock { $0.count }, 1)
    }
}
