import EventLoop
import Expectations
import HTTPSession
import Testing

@testable import HTTPSessionJournal

struct EventRelayTests {
    @Test func `the 300,000th event needs no more stack than the first`() {
        let relay = EventRelay()
        relay.handle(.sessionInvalidated)
        let count = Locked(0)
        relay.forward { _ in count.withLock { $0 += 1 } }
        // Without the struct around the closure, each event took 200 bytes of stack more than the one before.
        for _ in 0..<300_000 { relay.handle(.sessionInvalidated) }
        expectEqual(count.withLock { $0 }, 300_000)
    }
}
