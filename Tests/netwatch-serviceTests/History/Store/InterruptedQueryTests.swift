import EventLoop
import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

@testable import netwatch_service

@Suite struct InterruptedQueryTests {
    @Test func `a query that is interrupted at any moment fails without harm, and the next one works`() throws {
        let scratch = try ScratchDirectory()
        let offset: TimeZoneOffset = { _ in 0 }
        let (store, _) = try HistoryStore.open(
            .init(directory: scratch.path), calendar: DayCalendar(offset: offset),
            now: ClockReading(wall: 1_800_000_000_000, monotonic: 0, bootTime: 0), onStatus: { _ in })
        defer { store.close() }
        let reader = try HistoryReader(StateDirectory(path: scratch.path))
        defer { reader.close() }
        let isDone = Locked(false)
        let thread = Thread { while !isDone.withLock({ $0 }) { reader.interruptOverdueQuery() } }
        thread.start()
        var interrupted = 0
        // On a busy machine, the other thread may not run for a while.
        for number in 0..<300_000 where number < 3_000 || interrupted == 0 {
            if number >= 3_000 { sched_yield() }
            do {
                // The time has passed already, so the other thread interrupts whatever runs.
                _ = try reader.run(until: 1) { try $0.gaps(0..<Int64.max / 2_000_000) }
            } catch { interrupted += 1 }
        }
        isDone.withLock { $0 = true }
        #expect(interrupted > 0)
        try expectEmpty(reader.targets())
    }
}
