import Expectations
import Testing

@testable import Reachability

/// The count of failed probes over their schedule: the interval is 10 s. Times are milliseconds.
@Suite struct PendingTests {
    private let server = "192.0.2.1"
    private let up = "up 192.0.2.1 eth0"
    private let pending = "up pending tcp/refused 192.0.2.1 eth0"
    private let down = "down tcp/refused 192.0.2.1 eth0"

    /// A target with this schedule. Its attempts have the numbers from 1 on.
    private struct Target {
        var transcript: Transcript
        private var attempt: UInt64 = 0

        init(_ settings: ProbeSettings = ProbeSettings(), start: Int64 = 0) throws {
            transcript = try Transcript("192.0.2.1:443", settings)
            transcript.showsPending = true
            _ = transcript.at(start, .begin)
        }

        /// A probe at its time. - Returns: the update.
        mutating func probe(_ time: Int64, _ error: SystemErrorNumber? = nil, gateway: String = "10.0.0.1") -> String? {
            _ = transcript.at(time, .tick)
            return answer(time, error, gateway: gateway)
        }

        mutating func answer(_ time: Int64, _ error: SystemErrorNumber? = nil, gateway: String = "10.0.0.1") -> String? {
            _ = transcript.at(time, .route(to: "192.0.2.1", gateway: gateway))
            attempt += 1
            return transcript.at(time, error.map { .failed(attempt, $0) } ?? .connected(attempt)).first {
                !$0.hasPrefix("report")
            }
        }

        var due: Int64? { transcript.tickDue }
    }

    @Test func `a refusal is examined at once, and the next scheduled one gives the verdict`() throws {
        var target = try Target()
        expectEqual(target.answer(0), up)
        expectEqual(target.probe(10_000, .connectionRefused), pending)
        expectEqual(target.due, 10_000)
        expectNil(target.probe(10_000, .connectionRefused))
        expectEqual(target.due, 20_000)
        expectEqual(target.probe(20_000, .connectionRefused), down)
        expectEqual(target.transcript.published?.failingSince, Transcript.moment(10_000))
        expectEqual(target.transcript.published?.statusMoment, Transcript.moment(20_000))
    }

    @Test func `a success after the first failure is published, and the count begins anew`() throws {
        var target = try Target()
        _ = target.answer(0)
        _ = target.probe(10_000, .connectionRefused)
        expectEqual(target.probe(10_000), up)
        expectEqual(target.probe(20_000, .connectionRefused), pending)
    }

    @Test func `the cause of a failure that is pending changes with what examines it`() throws {
        var target = try Target()
        _ = target.answer(0)
        expectEqual(target.probe(10_000, .connectionRefused), pending)
        expectEqual(target.probe(10_000, .connectionReset), "up pending tcp/reset 192.0.2.1 eth0")
    }

    @Test func `the first probes after a start count`() throws {
        var target = try Target()
        expectEqual(target.answer(0, .connectionRefused), "unknown pending tcp/refused")
        expectNil(target.probe(0, .connectionRefused))
        expectEqual(target.due, 10_000)
        expectEqual(target.probe(10_000, .connectionRefused), down)
    }

    @Test func `a probe after a change of the path counts, and the next one that does begins an interval later`() throws {
        var target = try Target()
        _ = target.answer(0)
        _ = target.transcript.at(7_000, .localStateChanged)
        _ = target.transcript.at(7_000, .route(to: server, gateway: "10.0.0.9"))
        expectEqual(target.answer(7_000, .connectionRefused, gateway: "10.0.0.9"), pending)
        _ = target.probe(7_000, .connectionRefused, gateway: "10.0.0.9")
        // The slot of the grid at 10 s is too near, and the next one too far.
        expectEqual(target.due, 17_000)
        expectEqual(target.probe(17_000, .connectionRefused, gateway: "10.0.0.9"), down)
    }

    @Test func `the probe that examines silence passes a slot of the grid, and the next one counts at once`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interval: .seconds(5)))
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        _ = target.at(0, .begin)
        for (start, due) in [(0, 3_100), (3_100, 6_100), (6_100, 10_000)] as [(Int64, Int64)] {
            if start > 0 { _ = target.at(start, .tick) }
            _ = target.at(start, .route(to: server))
            _ = target.at(start + 3_000, .tick)
            _ = target.at(start + 3_000, .neighbor(gateway, .state(.reachable)))
            expectEqual(target.tickDue, due)
        }
        expectEqual(target.state, .down)
    }

    @Test func `a busy machine that starts a probe late loses no interval`() throws {
        var target = try Target()
        _ = target.answer(0)
        expectEqual(target.probe(10_400, .connectionRefused), pending)
        expectNil(target.probe(10_400, .connectionRefused))
        expectEqual(target.probe(20_000, .connectionRefused), down)
    }

    @Test func `the end of a missing route is published at once, whatever recover-after is`() throws {
        var target = try Target(ProbeSettings(failAfter: 3, recoverAfter: 3))
        expectNil(target.answer(0))
        _ = target.transcript.at(5_000, .localStateChanged)
        expectEqual(target.transcript.at(5_000, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
        _ = target.transcript.at(6_000, .localStateChanged)
        expectEqual(target.answer(6_000), up)
    }
}
