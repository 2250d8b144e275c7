import Expectations
import Testing

@testable import Reachability

private let second: Int64 = 1_000_000_000
private let hour: Int64 = 3_600 * second

@Suite struct ByteBudgetTests {
    /// 100 bytes an hour.
    private let budget = ByteBudget(bytesPerDay: 2_400)

    @Test func `a full budget allows the bytes of one hour at once, and the next ones as they are refilled`() {
        var budget = budget
        budget.spend(99, at: 0)
        #expect(budget.allows(at: 0))
        budget.spend(1, at: 0)
        #expect(!budget.allows(at: 0))
        #expect(!budget.allows(at: 0) && budget.allows(at: 1))
        budget.spend(50, at: 1)
        #expect(!budget.allows(at: hour / 2) && budget.allows(at: hour / 2 + 1))
    }

    @Test func `an unused budget holds no more than the bytes of one hour`() {
        var budget = budget
        budget.spend(100, at: 100 * hour)
        #expect(!budget.allows(at: 100 * hour))
    }

    @Test func `a probe that exceeds the contents leaves a debt, which is refilled first`() {
        var budget = budget
        budget.spend(300, at: 0)
        #expect(!budget.allows(at: 2 * hour) && budget.allows(at: 2 * hour + 1))
    }

    @Test func `bytes that are returned can be used again, and fill the budget to no more than its limit`() {
        var budget = budget
        budget.spend(100, at: 0)
        budget.refund(40)
        #expect(budget.allows(at: 0))
        budget.spend(40, at: 0)
        #expect(!budget.allows(at: 0))
        budget.refund(1_000)
        budget.spend(100, at: 0)
        #expect(!budget.allows(at: 0))
    }

    @Test func `waiting probes begin one after the other in their order, and no other probe before them`() {
        var budget = budget
        budget.spend(100, at: 0)
        let turns = (0..<3).map { _ in budget.reserve(50) }
        expectEqual(turns, [1, hour / 2 + 1, hour + 1])
        #expect(!budget.allows(at: hour) && budget.allows(at: hour + 1))
        #expect(budget.allowsWaiting(at: 1))
    }

    @Test func `a probe whose predecessors sent more than they reserved waits again`() {
        var budget = budget
        budget.spend(100, at: 0)
        let turn = budget.reserve(10)
        budget.spend(40, at: 0)
        #expect(!budget.allowsWaiting(at: turn))
        expectEqual(budget.reserve(10), hour * 4 / 10 + 1)
    }

    @Test(arguments: [Int.min, 0, 1]) func `the smallest budget allows a probe, and the next one days later`(bytes: Int) {
        var budget = ByteBudget(bytesPerDay: bytes)
        #expect(budget.allows(at: 0))
        budget.spend(100, at: 0)
        #expect(!budget.allows(at: 99 * 24 * hour) && budget.allows(at: 100 * 24 * hour))
    }

    @Test func `the largest numbers do not overflow`() {
        var budget = ByteBudget(bytesPerDay: .max)
        budget.spend(.max, at: .max)
        _ = budget.reserve(.max)
        #expect(!budget.allows(at: 0))
        budget.refund(.max)
        var levels = LevelResult()
        (levels.bytesSent, levels.bytesReceived) = (.max, .max)
        expectEqual(ProbeBytes.levels(levels, .v6), .max)
        levels.bytesSent = .min
        #expect(ProbeBytes.levels(levels, .v4) > 0)
    }

    @Test func `limits out of range are set to the nearest in range`() {
        let limits = MeteredLimits(intervalFactor: 0, bytesPerDay: -5)
        #expect(limits.intervalFactor == 1 && limits.bytesPerDay == 1)
        expectEqual(
            MeteredLimits(intervalFactor: 5_000, bytesPerDay: nil), MeteredLimits(intervalFactor: 1_000, bytesPerDay: nil))
        #expect(MeteredLimits().bytesPerDay == 5_000_000 && MeteredLimits().intervalFactor == 6)
    }
}

/// A target behind eth0, which is a metered interface.
@Suite struct MeteredTargetTests {
    private func target() throws -> Transcript {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interval: .seconds(10)))
        target.host.metered = [2]
        return target
    }

    @Test func `a target behind a metered interface is probed at a sixth of the rate, and confirmed as usual`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "192.0.2.1")), ["connect 1 192.0.2.1"])
        _ = target.at(5, .connected(1))
        expectEqual(target.tickDue, 60_000)
        _ = target.at(60_000, .tick)
        _ = target.at(60_000, .route(to: "192.0.2.1"))
        _ = target.at(60_005, .failed(2, .connectionRefused))
        expectEqual(target.tickDue, 60_005)
    }

    @Test func `a pause is published, keeps the status, and ends with a probe that does not wait`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        _ = target.at(5, .connected(1))
        expectEqual(target.at(60_000, .paused(until: 90_000_000_000)), ["up 192.0.2.1 eth0"])
        #expect(target.published?.isPaused == true && target.tickDue == 90_000)
        expectEqual(target.at(89_999, .tick), [])
        expectEqual(target.at(90_000, .tick), ["route? 192.0.2.1"])
        _ = target.at(90_000, .route(to: "192.0.2.1"))
        // The budget is still short, because this probe had to wait.
        expectEqual(target.at(90_005, .connected(2)), ["report ok"])
        _ = target.at(180_000, .tick)
        _ = target.at(180_000, .route(to: "192.0.2.1"))
        expectEqual(target.at(180_005, .connected(3)), ["report ok", "up 192.0.2.1 eth0"])
        expectEqual(target.published?.isPaused, false)
    }

    @Test func `a wait of less than an interval is not published`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        _ = target.at(5, .connected(1))
        expectEqual(target.at(60_000, .paused(until: 69_000_000_000)), [])
        expectEqual(target.tickDue, 69_000)
    }

    @Test func `a change to another interface ends the wait and the slow class`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        _ = target.at(5, .connected(1))
        _ = target.at(60_000, .paused(until: 900_000_000_000))
        _ = target.at(61_000, .localStateChanged)
        expectEqual(target.at(61_000, .route(to: "192.0.2.1", over: 3)), ["connect 2 192.0.2.1"])
        expectEqual(target.at(61_005, .connected(2)).last, "up 192.0.2.1 wlan0")
        expectEqual(target.tickDue, 70_000)
    }
}
