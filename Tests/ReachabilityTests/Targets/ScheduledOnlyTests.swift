import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"

/// Targets that are probed only at the times of their schedule, as by `netwatch probe`.
@Suite struct ScheduledOnlyTests {
    private func target() throws -> Transcript {
        var settings = ProbeSettings(interval: .seconds(1), timeout: .milliseconds(500))
        settings.isScheduledOnly = true
        return try Transcript("192.0.2.1:443", settings)
    }

    @Test func `failed probes are not confirmed, and the next one starts one interval after the first`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        expectEqual(target.at(1, .failed(1, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.tickDue, 1000)
        _ = target.at(1000, .tick)
        _ = target.at(1000, .route(to: server))
        expectEqual(target.at(1001, .connected(2)).first, "report ok")
        expectEqual(target.tickDue, 2000)
        _ = target.at(2000, .tick)
        _ = target.at(2000, .route(to: server))
        expectEqual(target.at(2001, .failed(3, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.tickDue, 3000)
    }

    @Test func `a probe without a route has a report at each time of the schedule`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server)).first, "report route/no-route")
        expectEqual(target.tickDue, 1000)
        expectEqual(target.at(1000, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(1000, .noRoute(to: server)), ["report route/no-route"])
        expectEqual(target.tickDue, 2000)
    }

    @Test func `a probe over a missing interface has a report at each time of the schedule`() throws {
        var settings = ProbeSettings(interval: .seconds(1), interface: "usb0")
        settings.isScheduledOnly = true
        var target = try Transcript("192.0.2.1:443", settings)
        expectEqual(
            target.at(0, .begin),
            ["initial unknown", "report link/no-interface", "unreachable link/no-interface 192.0.2.1"])
        expectEqual(target.tickDue, 1000)
        expectEqual(target.at(1000, .tick), ["report link/no-interface"])
    }

    @Test func `a changed route starts no probe`() throws {
        var target = try target()
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        _ = target.at(1, .connected(1))
        expectEqual(target.at(300, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(300, .route(to: server, over: 3)), [])
        expectEqual(target.at(500, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(500, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
        expectEqual(target.at(700, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(700, .route(to: server)), [])
        expectEqual(target.tickDue, 750)
        expectEqual(target.at(750, .tick), ["unknown 192.0.2.1"])
        expectEqual(target.tickDue, 1000)
        _ = target.at(1000, .tick)
        expectEqual(target.at(1000, .route(to: server)), ["connect 2 192.0.2.1"])
        // A running probe keeps its attempts.
        expectEqual(target.at(1100, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(1100, .route(to: server, over: 3)), [])
        expectEqual(target.at(1101, .connected(2)).first, "report ok")
    }

    @Test func `the schedule has no phase, so that intervals are equal from the first probe on`() throws {
        var settings = ProbeSettings(interval: .seconds(1))
        settings.isScheduledOnly = true
        for number in 0..<3 {
            var machine = TargetMachine(
                id: TargetID(number), endpoint: try Endpoint("192.0.2.1:443"), settings: settings, firstNumber: 1)
            let localState = Transcript.Host().localState
            func play(_ event: TargetMachine.Event, at time: Int64) {
                _ = machine.handle(event, in: localState, at: Transcript.moment(time))
            }
            play(.begin, at: 5)
            let query = RouteQuery(try #require(IPAddress(server)), port: 443)
            play(.route(query, .route(ChosenRoute(interface: 2))), at: 5)
            play(.connected(1), at: 6)
            expectEqual(machine.deadline, 1_005_000_000)
        }
    }
}
