import Pacing
import Testing

@testable import Reachability

@Suite struct DumpScheduleTests {
    private let second: Int64 = 1_000_000_000

    @Test func `the first requested dump starts at once, the next one a second after that start`() {
        var schedule = DumpSchedule()
        schedule.request(.links, at: 0)
        #expect(schedule.deadline == 0)
        #expect(schedule.next(at: 0) == .links)
        #expect(schedule.deadline == nil)
        #expect(schedule.finished(.complete, draw: 0, at: 5) == .accept)
        schedule.request(.links, at: 10)
        #expect(schedule.deadline == second)
        #expect(schedule.next(at: second - 1) == nil)
        #expect(schedule.next(at: second) == .links)
    }

    @Test func `one dump runs at a time, in a fixed order`() {
        var schedule = DumpSchedule()
        schedule.requestAll(at: 0)
        for table in KernelTable.allCases {
            #expect(schedule.next(at: 0) == table)
            #expect(schedule.next(at: 0) == nil)
            #expect(schedule.isPending(table))
            #expect(schedule.finished(.complete, draw: 0, at: 0) == .accept)
        }
        #expect(schedule.isIdle)
        #expect(schedule.deadline == nil)
    }

    @Test func `several requests make one dump, and a request during a dump makes another one`() {
        var schedule = DumpSchedule()
        schedule.request(.routesV4, at: 0)
        schedule.request(.routesV4, at: 0)
        #expect(schedule.next(at: 0) == .routesV4)
        schedule.request(.routesV4, at: 1)
        #expect(schedule.finished(.complete, draw: 0, at: 2) == .accept)
        #expect(!schedule.isIdle)
        #expect(schedule.next(at: second) == .routesV4)
        #expect(schedule.finished(.complete, draw: 0, at: second) == .accept)
        #expect(schedule.isIdle)
    }

    @Test(arguments: [UInt64(0), 7, .max])
    func `a dump interrupted five times is repeated with jitter, then its partial result is accepted and a later dump follows`(
        seed: UInt64
    ) {
        var schedule = DumpSchedule()
        var draws = SplitMix64(seed: seed)
        var now: Int64 = 0
        schedule.request(.routesV6, at: now)
        for attempt in 1...5 {
            #expect(schedule.next(at: now) == .routesV6)
            #expect(schedule.finished(.interrupted, draw: draws.next(), at: now) == .retry)
            #expect(!schedule.isStale)
            let due = schedule.deadline ?? -1
            #expect(due >= now && due <= now + 20_000_000 << Int64(attempt))
            now = due
        }
        #expect(schedule.next(at: now) == .routesV6)
        #expect(schedule.finished(.interrupted, draw: draws.next(), at: now) == .acceptPartial)
        #expect(schedule.isStale)
        #expect(schedule.deadline == now + 2 * second)
    }

    @Test func `a table that always interrupts its dump is dumped less and less often, up to every 32 s`() {
        var schedule = DumpSchedule()
        var now: Int64 = 0
        var pauses: [Int64] = []
        schedule.request(.links, at: now)
        for _ in 0..<7 {
            while true {
                #expect(schedule.next(at: now) == .links)
                let verdict = schedule.finished(.interrupted, draw: 0, at: now)
                let due = schedule.deadline ?? now
                defer { now = due }
                guard verdict == .acceptPartial else { continue }
                pauses.append((due - now) / second)
                break
            }
        }
        #expect(pauses == [2, 4, 8, 16, 32, 32, 32])
        #expect(schedule.next(at: now) == .links)
        #expect(schedule.finished(.complete, draw: 0, at: now) == .accept)
        #expect(!schedule.isStale)
    }

    @Test func `the end of a dump that nobody started changes nothing`() {
        var schedule = DumpSchedule()
        #expect(schedule.finished(.interrupted, draw: 0, at: 0) == .accept)
        #expect(schedule.isIdle)
    }
}
