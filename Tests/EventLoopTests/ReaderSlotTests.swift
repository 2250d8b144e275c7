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

    @Test func `values that cannot be merged are dropped, and the waiting reader catches up once`() async {
        let slot = ReaderSlot<Int>(5)
        #expect(slot.offer(5, merging: add(5)) == .dropped)
        #expect(slot.take() == nil)
        let caughtUp = await slot.next { #expect(slot.offer(8, merging: { _ in nil }) == .delivered) }
        #expect(caughtUp == 8)
        #expect(slot.offer(9, merging: add(9)) == .stored)
        let stored = await slot.next { Issue.record("not behind") }
        #expect(stored == 9)
    }

    @Test func `a complete state that is dropped before the reader waits for it is requested again`() async {
        let slot = ReaderSlot<Int>(isBehind: true)
        #expect(slot.offer(1, merging: { _ in nil }) == .stored)
        #expect(slot.offer(2, merging: { _ in nil }) == .dropped)
        #expect(await slot.next { _ = slot.offer(3, merging: { _ in nil }) } == 3)
    }

    @Test func `a reader that is behind takes the stored value first, and does not catch up after the end`() async {
        let slot = ReaderSlot<Int>(1, isBehind: true)
        let first = await slot.next { Issue.record("a value is available") }
        #expect(first == 1)
        slot.finish()
        let end = await slot.next { Issue.record("the slot has finished") }
        #expect(end == nil)
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
