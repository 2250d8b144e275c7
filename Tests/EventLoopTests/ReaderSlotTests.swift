import Testing

@testable import EventLoop

@Suite struct ReaderSlotTests {
    private func add(_ one: Int) -> (Int) -> Int? { { $0 + one < 10 ? $0 + one : nil } }

    @Test func `a value that was not taken is merged with the next`() async {
        let place = ReaderSlot<Int>()
        #expect(place.offer(1, merging: add(1)) == .waits)
        #expect(place.offer(2, merging: add(2)) == .merged)
        #expect(await place.next() == 3)
        #expect(place.take() == nil)
    }

    @Test func `values that cannot be merged are dropped, and the reader catches up once`() {
        let place = ReaderSlot<Int>(5)
        #expect(!place.catchUp())
        #expect(place.offer(5, merging: add(5)) == .dropped)
        #expect(place.take() == nil)
        #expect(place.catchUp())
        #expect(!place.catchUp())
    }

    @Test func `a reader that is behind takes the stored value first, and does not catch up after the end`() {
        let place = ReaderSlot<Int>(1, isBehind: true)
        #expect(!place.catchUp())
        #expect(place.take() == 1)
        place.finish()
        #expect(!place.catchUp())
    }

    @Test func `a waiting task receives the value, the end, or its cancellation`() async {
        let place = ReaderSlot<Int>()
        // Whether it waits already or comes to it later, the value is its.
        let reader = Task { await place.next() }
        #expect(place.offer(7, merging: add(7)) != .dropped)
        #expect(await reader.value == 7)
        let cancelled = Task { await place.next() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        let last = Task { await place.next() }
        place.finish()
        #expect(await last.value == nil)
    }
}
