import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"

@Suite struct PassiveEvidenceTests {
    private static let refusal = TargetMachine.Event.failed(2, .connectionRefused)

    private func success(_ address: String? = nil, _ roundTrip: Duration? = nil) -> TargetMachine.Event {
        .reported(.success(address: address.flatMap { IPAddress($0) }, roundTrip: roundTrip))
    }

    private let failure = TargetMachine.Event.reported(.failure)

    /// A target that is up at time 0, and is probed at 10 s.
    private func up(_ settings: ProbeSettings = ProbeSettings()) throws -> Transcript {
        var target = try Transcript("192.0.2.1:443", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        try #require(target.at(0, .connected(1)) == ["report ok", "up 192.0.2.1 eth0"])
        return target
    }

    /// A target that is down at time 0, after one failed probe.
    private func down(_ settings: ProbeSettings = ProbeSettings(failAfter: 1)) throws -> Transcript {
        var target = try Transcript("192.0.2.1:443", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        try #require(target.at(0, .failed(1, .connectionRefused)).last == "down tcp/refused 192.0.2.1 eth0")
        return target
    }

    // MARK: Successes

    @Test func `a transfer's success makes a target up that is down, with its address and its round trip`() throws {
        var target = try down()
        expectEqual(target.at(4_000, success(server, .milliseconds(7))), ["up 192.0.2.1 eth0"])
        guard case .publish(let update)? = target.effects.last else {
            Issue.record("no update")
            return
        }
        #expect(update.roundTrip == .milliseconds(7) && update.status.isReachable)
    }

    @Test func `the next scheduled probe is skipped after a success`() throws {
        var target = try up()
        expectEqual(target.tickDue, 10_000)
        #expect(target.at(4_000, success()) == [] && target.tickDue == 20_000)
        // Further successes move the probe only if it would follow them by less than an interval.
        #expect(target.at(9_000, success()) == [] && target.tickDue == 20_000)
        #expect(target.at(10_001, success()) == [] && target.tickDue == 30_000)
    }

    @Test func `a target whose traffic succeeds is not probed`() throws {
        var target = try up()
        for second in 1...600 as ClosedRange<Int64> { expectEqual(target.at(second * 1_000, success()), []) }
        expectEqual(target.tickDue, 610_000)
    }

    @Test func `a success counts like that of a probe with recoverAfter`() throws {
        var target = try down(ProbeSettings(failAfter: 1, recoverAfter: 3))
        // Like probes, successes count an interval apart.
        for time in [3_000, 3_500, 13_000] as [Int64] { expectEqual(target.at(time, success(server, .milliseconds(7))), []) }
        expectEqual(target.at(23_000, success(server, .milliseconds(7))), ["up 192.0.2.1 eth0"])
        expectEqual(target.tickDue, 40_000)
    }

    @Test func `a success refutes a first failure`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(10_001, Self.refusal)
        #expect(target.at(10_001, success()) == [] && target.tickDue == 30_000)
        _ = target.at(30_000, .tick)
        _ = target.at(30_000, .route(to: server))
        expectEqual(target.at(30_001, .failed(3, .connectionRefused)), ["report tcp/refused"])
    }

    @Test func `a success does not change the address of a target that is up`() throws {
        var target = try up()
        expectEqual(target.at(1_000, success("192.0.2.77", .milliseconds(9))), [])
        expectEqual(target.published?.address, IPAddress(server))
    }

    @Test func `a success during a probe is published at once, and the probe continues`() throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        expectEqual(target.at(5, success(server, .milliseconds(3))), ["up 192.0.2.1 eth0"])
        expectEqual(target.at(9, .connected(1)), ["report ok"])
        expectEqual(target.tickDue, 10_000)
    }

    @Test func `a success without a round trip causes a probe if none is known`() throws {
        var target = try down()
        expectEqual(target.tickDue, 10_000)
        #expect(target.at(400, success(server)) == [] && target.tickDue == 1_000)
        expectEqual(target.at(1_000, .tick), ["route? 192.0.2.1"])
    }

    @Test func `a success over another interface or family is no evidence`() throws {
        var bound = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1, interface: "eth0"))
        _ = bound.at(0, .begin)
        _ = bound.at(0, .route(to: server, bound: 2))
        _ = bound.at(0, .failed(1, .connectionRefused))
        #expect(bound.at(10, success(server, .milliseconds(3))) == [] && bound.state == .down)
        var target = try down(ProbeSettings(failAfter: 1, families: [.v4]))
        #expect(target.at(10, success("2001:db8::1", .milliseconds(3))) == [] && target.state == .down)
        expectEqual(target.at(10, success(server, .milliseconds(3))), ["up 192.0.2.1 eth0"])
    }

    @Test func `reports change neither the status nor the schedule of a target that is probed only at the times of the schedule`()
        throws
    {
        var settings = ProbeSettings(failAfter: 1)
        settings.isScheduledOnly = true
        var target = try down(settings)
        #expect(target.at(10, success(server, .milliseconds(3))) == [] && target.at(20, failure) == [])
        #expect(target.state == .down && target.tickDue == 10_000)
    }

    @Test func `only the successes that replace a probe count for flapping`() throws {
        var target = try up()
        // Twelve failed transfers, each with a probe that fails, and a hundred successes before the next one.
        var changes: [Bool] = []
        for step in 0..<12 as Range<Int64> {
            let start = 10_000 + step * 40_000
            _ = target.at(start, failure)
            guard target.at(start, .tick) == ["route? 192.0.2.1"] else { continue }
            let line = target.at(start, .route(to: server)).first ?? ""
            let number = line.split(separator: " ").dropFirst().first.flatMap { UInt64($0) } ?? 0
            _ = target.at(start + 1, .failed(number, .connectionRefused))
            for time in 0..<100 as Range<Int64> { _ = target.at(start + 2 + time, success(server, .milliseconds(3))) }
            changes.append(target.published?.isFlapping == true)
        }
        #expect(changes.count == 12 && changes.last == true)
    }

    @Test func `a degraded target is probed although its traffic succeeds`() throws {
        var settings = ProbeSettings()
        settings.quality = QualityLimits(loss: nil, roundTrip: .milliseconds(4), window: 5)
        var target = try up(settings)
        for slot in 1...5 as ClosedRange<Int64> where target.state == .up {
            _ = target.at(slot * 10_000, .tick)
            let line = target.at(slot * 10_000, .route(to: server)).first ?? ""
            let number = line.split(separator: " ").dropFirst().first.flatMap { UInt64($0) } ?? 0
            _ = target.at(slot * 10_000, .connected(number))
        }
        try #require(target.state == .degraded)
        let due = target.tickDue
        #expect(target.at((due ?? 0) - 1, success(server, .milliseconds(1))) == [] && target.tickDue == due)
    }

    // MARK: Failures

    @Test func `a failed transfer causes a probe at once, and is no result itself`() throws {
        var target = try up(ProbeSettings(interval: .seconds(3_600)))
        expectEqual(target.tickDue, 3_600_000)
        #expect(target.at(60_000, failure) == [] && target.tickDue == 60_000)
        expectEqual(target.state, .up)
        expectEqual(target.at(60_000, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(60_000, .route(to: server)), ["connect 2 192.0.2.1"])
        expectEqual(target.at(60_001, .connected(2)), ["report ok"])
    }

    @Test func `failures cause at most one probe a second`() throws {
        var target = try up(ProbeSettings(interval: .seconds(3_600)))
        var probes: [Int64] = []
        for time in stride(from: 2_000, to: 5_500, by: 50) as StrideTo<Int64> {
            _ = target.at(time, failure)
            guard target.at(time, .tick) == ["route? 192.0.2.1"] else { continue }
            probes.append(time)
            _ = target.at(time, .route(to: server))
            _ = target.at(time + 1, .connected(UInt64(probes.count + 1)))
        }
        expectEqual(probes, [2_000, 3_000, 4_000, 5_000])
    }

    @Test func `a failure does not delay a probe that is due sooner`() throws {
        var target = try up(ProbeSettings(interval: .milliseconds(1_500)))
        _ = target.at(1_500, .tick)
        _ = target.at(1_500, .route(to: server))
        _ = target.at(1_501, .connected(2))
        expectEqual(target.tickDue, 3_000)
        #expect(target.at(1_502, failure) == [] && target.tickDue == 2_500)
        var quick = try up(ProbeSettings(interval: .milliseconds(300)))
        #expect(quick.at(10, failure) == [] && quick.tickDue == 300)
    }

    @Test func `a failure during a probe causes no other`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        expectEqual(target.at(10_001, failure), [])
        _ = target.at(10_001, .route(to: server))
        expectEqual(target.at(10_002, failure), [])
        #expect(target.at(10_005, .connected(2)) == ["report ok"] && target.tickDue == 20_000)
    }

    // MARK: Other states

    @Test func `reports before the start, and without a route, are ignored`() throws {
        var target = try Transcript("192.0.2.1:443")
        #expect(target.at(0, success(server, .milliseconds(1))) == [] && target.at(0, failure) == [])
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server)).last, "unreachable route/no-route 192.0.2.1")
        let due = target.tickDue
        #expect(target.at(5, success(server, .milliseconds(1))) == [] && target.at(5, failure) == [])
        #expect(target.tickDue == due && target.state == .unreachable)
    }

    @Test func `a target whose family is excluded is never probed, whatever is reported`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(families: [.v6]))
        _ = target.at(0, .begin)
        expectNil(target.tickDue)
        #expect(target.at(1, failure) == [] && target.at(1, success(server, .milliseconds(1))) == [])
        #expect(target.tickDue == nil && target.state == .unreachable)
    }
}

@Suite struct TargetIndexTests {
    @Test func `targets with equal endpoints are found in order, others are not`() throws {
        var index = TargetIndex()
        index.add(TargetID(9), try Endpoint("x:1"))
        #expect(try !index.isBuilt && index.targets(of: Endpoint("x:1")).isEmpty)
        index.begin(count: 3)
        for (number, text) in [(4, "db.example:5432"), (2, "tcp://DB.example:5432"), (7, "db.example:5433")] {
            index.add(TargetID(number), try Endpoint(text))
        }
        let endpoint = try Endpoint("db.EXAMPLE:5432")
        expectEqual(index.targets(of: endpoint), [TargetID(2), TargetID(4)])
        index.remove(TargetID(4), endpoint)
        expectEqual(index.targets(of: endpoint), [TargetID(2)])
        index.remove(TargetID(4), endpoint)
        index.remove(TargetID(2), endpoint)
        expectEmpty(index.targets(of: endpoint))
        expectEqual(index.targets(of: try Endpoint("db.example:5433")), [TargetID(7)])
    }
}

@Suite struct ReportFilterTests {
    private let gap = ReportFilter.gap

    @Test func `only reports of monitored endpoints pass`() throws {
        let (filter, endpoint) = (ReportFilter(), try Endpoint("db.example:5432"))
        let report = PassiveReport(endpoint, .failure)
        #expect(!filter.admits(report, at: 0))
        filter.add(endpoint)
        filter.add(try Endpoint("DB.example:5432"))
        #expect(filter.admits(report, at: 0))
        filter.remove([endpoint])
        #expect(filter.admits(report, at: gap))
        filter.remove([endpoint])
        #expect(!filter.admits(report, at: 2 * gap))
        filter.remove([endpoint])
        #expect(!filter.admits(report, at: 3 * gap))
    }

    @Test func `one success and one failure of each endpoint pass in 100 ms`() throws {
        let (filter, first, second) = (ReportFilter(), try Endpoint("a:1"), try Endpoint("b:1"))
        filter.add(first)
        filter.add(second)
        var passed = 0
        for time in stride(from: 0, to: 1_000_000_000, by: 1_000_000) as StrideTo<Int64> {
            for endpoint in [first, second] {
                for outcome in [PassiveReport.Outcome.failure, .success(address: nil, roundTrip: nil)] {
                    if filter.admits(PassiveReport(endpoint, outcome), at: time) { passed += 1 }
                }
            }
        }
        expectEqual(passed, 40)
    }
}
