import Expectations
import Testing

@testable import Reachability

private let second: Int64 = 1_000_000_000

@Suite struct ProbeScheduleTests {
    @Test func `the first target keeps to the grid of its first probe`() {
        var schedule = ProbeSchedule(interval: .seconds(10), phase: ProbeSchedule.phase(of: TargetID(0)))
        schedule.began(at: 5 * second)
        schedule.continueByGrid(at: 6 * second)
        expectEqual(schedule.next, 15 * second)
    }

    @Test func `a target with a phase is probed on a shifted grid, at least half an interval after its first probe`() {
        var schedule = ProbeSchedule(interval: .seconds(8), phase: 1 << 30)
        schedule.began(at: 0)
        schedule.continueByGrid(at: second)
        // The slot at 2 s is less than half an interval after the first probe.
        expectEqual(schedule.next, 10 * second)
        var other = ProbeSchedule(interval: .seconds(8), phase: 3 << 30)
        other.began(at: 0)
        other.continueByGrid(at: second)
        expectEqual(other.next, 6 * second)
    }

    @Test func `the second probes of 10,000 targets that began together are spread over one interval`() {
        var starts = [Int](repeating: 0, count: 200)
        for number in 0..<10_000 {
            var schedule = ProbeSchedule(interval: .seconds(10), phase: ProbeSchedule.phase(of: TargetID(number)))
            schedule.began(at: 0)
            schedule.continueByGrid(at: 1)
            starts[Int((schedule.next ?? 0) / (second / 10))] += 1
        }
        // The second probe is between half an interval and one and a half intervals after the first.
        #expect(starts.prefix(50).allSatisfy { $0 == 0 } && starts[50..<150].reduce(0, +) >= 9_999)
        #expect((95...105).contains(starts[50..<150].max() ?? 0) && (95...105).contains(starts[50..<150].min() ?? 0))
    }

    @Test func `targets of the slow class are probed on a wider grid, spread over its interval`() {
        var starts = [Int](repeating: 0, count: 10)
        for number in 0..<1_000 {
            var schedule = ProbeSchedule(interval: .seconds(10), phase: ProbeSchedule.phase(of: TargetID(number)))
            schedule.began(at: 0)
            schedule.continueByGrid(at: 1, factor: 6)
            let next = schedule.next ?? 0
            starts[Int(next / (10 * second))] += 1
            schedule.began(at: next)
            schedule.continueByGrid(at: next + 1, factor: 6)
            expectEqual(schedule.next, next + 60 * second)
        }
        #expect(starts.prefix(3).allSatisfy { $0 == 0 } && starts[3..<9].allSatisfy { (160...175).contains($0) })
    }

    @Test func `slots that pass while a probe runs are skipped`() {
        var schedule = ProbeSchedule(interval: .seconds(1))
        schedule.began(at: 0)
        schedule.continueByGrid(at: second / 2)
        expectEqual(schedule.next, second)
        schedule.began(at: second)
        schedule.continueByGrid(at: 4 * second + 1)
        expectEqual(schedule.next, 5 * second)
    }

    @Test func `a probe that waits for its turn longer than an interval skips slots`() {
        var schedule = ProbeSchedule(interval: .seconds(1))
        schedule.began(at: 0)
        schedule.continueByGrid(at: 1)
        schedule.began(at: 3 * second + 5)
        schedule.continueByGrid(at: 3 * second + 6)
        expectEqual(schedule.next, 4 * second)
    }

    @Test func `a success is confirmed within a second or an interval, and the next slot is at least half an interval later`() {
        var schedule = ProbeSchedule(interval: .nanoseconds(10_000_000_000))
        schedule.began(at: 0)
        expectNil(schedule.next)
        schedule.confirm(.other, timeout: .seconds(3), at: 3)
        expectEqual(schedule.next, 1_000_000_000)
        schedule.began(at: 6_000_000_000)
        schedule.continueByGrid(at: 6_000_000_000)
        expectEqual(schedule.next, 20_000_000_000)
    }

    @Test func `a refusal is confirmed at once, and after a hundred times in a row once a second`() {
        var schedule = ProbeSchedule(interval: .seconds(10))
        for attempt in 0..<100 as Range<Int64> {
            schedule.began(at: attempt)
            schedule.confirm(.refusal, timeout: .seconds(3), at: attempt)
            expectEqual(schedule.next, attempt)
        }
        schedule.began(at: 200)
        schedule.confirm(.refusal, timeout: .seconds(3), at: 200)
        expectEqual(schedule.next, 200 + second)
        schedule.continueByGrid(at: 300)
        schedule.began(at: 400)
        schedule.confirm(.refusal, timeout: .seconds(3), at: 400)
        expectEqual(schedule.next, 400)
    }

    @Test(arguments: [(1, 1100), (3, 3100), (10, 10_000)] as [(Int64, Int64)])
    func `silence is confirmed 3.1 s after its start, and within twice the deadline plus 100 ms`(
        deadline: Int64, expected: Int64
    ) {
        var schedule = ProbeSchedule(interval: .seconds(60))
        schedule.began(at: 0)
        schedule.confirm(.silence, timeout: .seconds(deadline), at: deadline * second)
        expectEqual(schedule.next, expected * 1_000_000)
    }

    @Test func `a growing interval is an eighth of the time waited, between its first and its longest value`() {
        let interval = { ProbeSchedule.interval(from: second / 4, to: second, afterWaiting: $0) }
        expectEqual([0, 2, 4, 8, 3600].map { interval($0 * second) }, [second / 4, second / 4, second / 2, second, second])
    }

    @Test func `probes with a growing interval start one interval apart, and a change hurries the next one`() {
        var schedule = ProbeSchedule(interval: .seconds(1), initial: .milliseconds(250))
        var starts: [Int64] = []
        var now: Int64 = 0
        while now < 20 * second {
            schedule.began(at: now)
            schedule.continueByGrid(at: now + 1)
            starts.append(now)
            now = schedule.next ?? .max
        }
        expectEqual(starts[1], second / 4)
        let gaps = zip(starts.dropFirst(), starts).map { $0 - $1 }
        #expect(gaps == gaps.sorted() && gaps.last == second)
        // At most an eighth of the time passes until a server is found.
        for (start, next) in zip(starts, starts.dropFirst()) where start > 2 * second { #expect(next - start <= start / 8 + 1) }
        schedule.hurry(at: now - second / 2)
        expectEqual(schedule.next, now - second / 2)
        // Never less than the first interval after the last probe.
        schedule.hurry(at: now - second)
        expectEqual(schedule.next, now - second + second / 4)
        schedule.began(at: now)
        schedule.restartGrowth(at: now)
        schedule.continueByGrid(at: now + 1)
        expectEqual(schedule.next, now + second / 4)
    }

    @Test func `a change hurries no probe of a constant interval`() {
        var schedule = ProbeSchedule(interval: .seconds(10))
        schedule.began(at: 0)
        schedule.continueByGrid(at: 1)
        schedule.hurry(at: 2 * second)
        schedule.restartGrowth(at: 2 * second)
        expectEqual(schedule.next, 10 * second)
    }

    @Test func `the longest probe interval does not overflow`() {
        var schedule = ProbeSchedule(interval: .nanoseconds(Int64.max))
        schedule.began(at: 5)
        schedule.continueByGrid(at: 7)
        expectEqual(schedule.next, .max)
        schedule.confirm(.silence, timeout: .seconds(3), at: .max)
        expectEqual(schedule.next, .max)
        var growing = ProbeSchedule(interval: .nanoseconds(Int64.max), initial: .nanoseconds(Int64.max), phase: .max)
        growing.began(at: 5)
        growing.continueByGrid(at: 7, factor: 1_000)
        expectEqual(growing.next, .max)
    }
}
