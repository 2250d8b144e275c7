import Expectations
import Testing

@testable import Reachability

@Suite struct UntriedProbesTests {
    private let millisecond: Int64 = 1_000_000

    @Test(arguments: [(Duration.seconds(3), 500), (.seconds(60), 500), (.milliseconds(600), 100)] as [(Duration, Int64)])
    func `a probe keeps its socket for a sixth of its deadline, at most half a second`(timeout: Duration, expected: Int64) {
        var probes = UntriedProbes()
        probes.add(TargetID(1), timeout: timeout, at: 7)
        expectEqual(probes.first, UntriedProbes.Probe(target: TargetID(1), due: expected * millisecond + 7))
    }

    @Test func `a preempted first probe is no result, and starts again among those of silent targets`() throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        expectEqual(target.machine.lane, ProbeAdmission.Lane(.v4, .untried))
        expectEqual(target.at(400, .preempted), ["cancel 1"])
        expectEqual(target.machine.lane, ProbeAdmission.Lane(.v4, .silent))
        expectEqual(target.tickDue, 400)
        expectEqual(target.at(900, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(900, .route(to: "192.0.2.1")), ["connect 2 192.0.2.1"])
        // The second probe is not preempted.
        expectEqual(target.at(1_400, .preempted), [])
        expectEqual(target.at(2_900, .connected(2)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `a probe that counts by itself is not preempted`() throws {
        var settings = ProbeSettings()
        settings.isScheduledOnly = true
        var target = try Transcript("192.0.2.1:443", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        expectEqual(target.at(400, .preempted), [])
    }

    @Test func `probes are removed in the order of their starts`() {
        var probes = UntriedProbes()
        var removed: [TargetID] = []
        for number in 0..<1_000 {
            probes.add(TargetID(number), timeout: .seconds(1), at: 0)
            guard number % 3 != 0, let first = probes.first else { continue }
            removed.append(first.target)
            probes.removeFirst()
        }
        while let first = probes.first {
            removed.append(first.target)
            probes.removeFirst()
        }
        expectEqual(removed, (0..<1_000).map { TargetID($0) })
    }
}
