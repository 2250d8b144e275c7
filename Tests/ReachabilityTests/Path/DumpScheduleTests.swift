import Expectations
import Pacing
import Testing

@testable import Reachability

@Suite struct DumpScheduleTests {
    private let second: Int64 = 1_000_000_000

    @Test func `the first requested dump starts at once, the next one a second after that start`() {
        var schedule = DumpSchedule()
        schedule.request(.links, at: 0)
        expectEqual(schedule.deadline, 0)
        expectEqual(schedule.next(at: 0), .links)
        expectNil(schedule.deadline)
        expectEqual(schedule.finished(.complete, draw: 0, at: 5), .accept)
        schedule.request(.links, at: 10)
        expectEqual(schedule.deadline, second)
        expectNil(schedule.next(at: second - 1))
        expectEqual(schedule.next(at: second), .links)
    }

    @Test func `one dump runs at a time, in a fixed order`() {
        var schedule = DumpSchedule()
        schedule.requestAll(at: 0)
        for table in KernelTable.allCases {
            expectEqual(schedule.next(at: 0), table)
            expectNil(schedule.next(at: 0))
            #expect(schedule.isPending(table))
            expectEqual(schedule.finished(.complete, draw: 0, at: 0), .accept)
        }
        #expect(schedule.isIdle)
        expectNil(schedule.deadline)
    }

    @Test func `several requests make one dump, and a request during a dump makes another one`() {
        var schedule = DumpSchedule()
        schedule.request(.routesV4, at: 0)
        schedule.request(.routesV4, at: 0)
        expectEqual(schedule.next(at: 0), .routesV4)
        schedule.request(.routesV4, at: 1)
        expectEqual(schedule.finished(.complete, draw: 0, at: 2), .accept)
        #expect(!schedule.isIdle)
        expectEqual(schedule.next(at: second), .routesV4)
        expectEqual(schedule.finished(.complete, draw: 0, at: second), .accept)
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
            expectEqual(schedule.next(at: now), .routesV6)
            expectEqual(schedule.finished(.interrupted, draw: draws.next(), at: now), .retry)
            #expect(!schedule.isStale)
            let due = schedule.deadline ?? -1
            #expect(due >= now && due <= now + 20_000_000 << Int64(attempt))
            now = due
        }
        expectEqual(schedule.next(at: now), .routesV6)
        expectEqual(schedule.finished(.interrupted, draw: draws.next(), at: now), .acceptPartial)
        #expect(schedule.isStale)
        expectEqual(schedule.deadline, now + 2 * second)
    }

    @Test func `a table that always interrupts its dump is dumped less and less often, up to every 32 s`() {
        var schedule = DumpSchedule()
        var now: Int64 = 0
        var pauses: [Int64] = []
        schedule.request(.links, at: now)
        for _ in 0..<7 {
            while true {
                expectEqual(schedule.next(at: now), .links)
                let verdict = schedule.finished(.interrupted, draw: 0, at: now)
                let due = schedule.deadline ?? now
                defer { now = due }
                guard verdict == .acceptPartial else { continue }
                pauses.append((due - now) / second)
                break
            }
        }
        expectEqual(pauses, [2, 4, 8, 16, 32, 32, 32])
        expectEqual(schedule.next(at: now), .links)
        expectEqual(schedule.finished(.complete, draw: 0, at: now), .accept)
        #expect(!schedule.isStale)
    }

    @Test func `the end of a dump that nobody started changes nothing`() {
        var schedule = DumpSchedule()
        expectEqual(schedule.finished(.interrupted, draw: 0, at: 0), .accept)
        #expect(schedule.isIdle)
    }
}
