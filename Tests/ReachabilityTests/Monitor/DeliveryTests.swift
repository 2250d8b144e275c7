import EventLoop
import Testing

@testable import Reachability

@Suite struct DeliveryTests {
    private struct Number: Coalescing {
        var value: Int
        func following(_ earlier: Number) -> Number { self }
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
        #expect(last.withLock { $0 } == 1)
        #expect(token != nil)
        token = nil
        broadcast.publish(Number(value: 2))
        await withCheckedContinuation { done in delivery.run { done.resume() } }
        #expect(last.withLock { $0 } == 1)
    }
}
