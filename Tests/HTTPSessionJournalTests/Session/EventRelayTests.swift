import EventLoop
import HTTPSession
import Testing

@testable import HTTPSessionJournal

struct EventRelayTests {
    @Test func `the last event is told as the first was, however many there have been`() {
        let relay = EventRelay()
        relay.handle(.sessionInvalidated)
        let count = Locked(0)
        relay.tell { _ in count.withLock { $0 += 1 } }
        // Each once took another 200 bytes of the stack than the one before.
        for _ in 0..<300_000 { relay.handle(.sessionInvalidated) }
        #expect(count.withLock { $0 } == 300_000)
    }
}
