import Expectations
import Testing

@testable import EventLoop

@Suite struct ReaderSlotTests {
    private func add(_ one: Int) -> (Int) -> Int? { { $0 + one < 10 ? $0 + one : nil } }

    @Test func `a value that was not taken is merged with the next`() async {
        let slot = ReaderSlot<Int>()
        expectEqual(slot.offer(1, merging: add(1)), .stored)
        expectEqual(slot.offer(2, merging: add(2)), .merged)
        await expectEqual(slot.next(), 3)
        expectNil(slot.take())
    }

    @Test func `values that cannot be merged are dropped, and the waiting reader catches up once`() async {
        let slot = ReaderSlot<Int>(5)
        expectEqual(slot.offer(5, merging: add(5)), .dropped)
        expectNil(slot.take())
        let caughtUp = await slot.next { expectEqual(slot.offer(8, merging: { _ in nil }), .delivered) }
        expectEqual(caughtUp, 8)
        expectEqual(slot.offer(9, merging: add(9)), .stored)
        let stored = await slot.next { Issue.record("not behind") }
        expectEqual(stored, 9)
    }

    @Test func `a complete state that is dropped before the reader waits for it is requested again`() async {
        let slot = ReaderSlot<Int>(isBehind: true)
        expectEqual(slot.offer(1, merging: { _ in nil }), .stored)
        expectEqual(slot.offer(2, merging: { _ in nil }), .dropped)
        await expectEqual(slot.next { _ = slot.offer(3, merging: { _ in nil }) }, 3)
    }

    @Test func `a reader that is behind takes the stored value first, and does not catch up after the end`() async {
        let slot = ReaderSlot<Int>(1, isBehind: true)
        let first = await slot.next { Issue.record("a value is available") }
        expectEqual(first, 1)
        slot.finish()
        let end = await slot.next { Issue.record("the slot has finished") }
        expectNil(end)
    }

    @Test func `a waiting task receives the value, the end, or its cancellation`() async {
        let slot = ReaderSlot<Int>()
        // The task receives the value whether it already waits or starts later.
        let reader = Task { await slot.next() }
        #expect(slot.offer(7, merging: add(7)) != .dropped)
        await expectEqual(reader.value, 7)
        let cancelled = Task { await slot.next() }
        cancelled.cancel()
        await expectNil(cancelled.value)
        let last = Task { await slot.next() }
        slot.finish()
        await expectNil(last.value)
    }
}
