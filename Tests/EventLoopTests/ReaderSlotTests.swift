import Testing

@testable import EventLoop

@Suite struct ReaderSlotTests {
    private func add(_ one: Int) -> (Int) -> Int? { { $0 + one < 10 ? $0 + one : nil } }

    @Test func `a value that was not taken is merged with the next`() async {
        let slot = ReaderSlot<Int>()
        #expect(slot.offer(1, merging: add(1)) == .stored)
        #expect(slot.offer(2, merging: add(2)) == .merged)
        #expect(await slot.next() == 3)
        #expect(slot.take() == nil)
    }

    @Test func `values that cannot be merged are dropped, and the reader catches up once`() {
        let slot = ReaderSlot<Int>(5)
        #expect(!slot.catchUp())
        #expect(slot.offer(5, merging: add(5)) == .dropped)
        #expect(slot.take() == nil)
        #expect(slot.catchUp())
        #expect(!slot.catchUp())
    }

    @Test func `a reader that is behind takes the stored value first, and does not catch up after the end`() {
        let slot = ReaderSlot<Int>(1, isBehind: true)
        #expect(!slot.catchUp())
        #expect(slot.take() == 1)
        slot.finish()
        #expect(!slot.catchUp())
    }

    @Test func `a waiting task receives the value, the end, or its cancellation`() async {
        let slot = ReaderSlot<Int>()
        // The task receives the value whether it already waits or starts later.
        let reader = Task { await slot.next() }
        #expect(slot.offer(7, merging: add(7)) != .dropped)
        #expect(await reader.value == 7)
        let cancelled = Task { await slot.next() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        let last = Task { await slot.next() }
        slot.finish()
        #expect(await last.value == nil)
    }
}
