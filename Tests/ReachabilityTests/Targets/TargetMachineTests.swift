import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"

@Suite struct TargetMachineTests {
    /// A target that is up at time 0. Its first attempt has the number 1.
    private func up(_ settings: ProbeSettings = ProbeSettings()) throws -> Transcript {
        var target = try Transcript("192.0.2.1:443", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        try #require(target.at(0, .connected(1)) == ["report ok", "up 192.0.2.1 eth0"])
        return target
    }

    @Test func `a target's route is queried, then its address is probed, then the target is up`() throws {
        var target = try Transcript("192.0.2.1:443")
        expectNil(target.tickDue)
        expectEqual(target.at(0, .begin), ["initial unknown", "route? 192.0.2.1"])
        expectEqual(target.at(1, .route(to: server)), ["connect 1 192.0.2.1"])
        // If no answer arrives, a second attempt follows.
        expectEqual(target.tickDue, 500)
        expectEqual(target.at(6, .connected(1)), ["report ok", "up 192.0.2.1 eth0"])
        expectEqual(target.tickDue, 10_000)
    }

    @Test func `only the first begin event starts a target, and events before it are ignored`() throws {
        var target = try Transcript("192.0.2.1:443")
        expectEqual(target.at(0, .localStateChanged), [])
        expectEqual(target.at(0, .resumed), [])
        expectEqual(target.at(0, .tick), [])
        expectEqual(target.at(0, .begin), ["initial unknown", "route? 192.0.2.1"])
        expectEqual(target.at(0, .begin), [])
    }

    @Test func `probes keep to the grid of the first one, however long they take`() throws {
        var target = try up()
        for (number, late) in [(2, 900), (3, 30), (4, 2500)] as [(UInt64, Int64)] {
            let slot = Int64(number - 1) * 10_000
            expectEqual(target.tickDue, slot)
            expectEqual(target.at(slot - 1, .tick), [])
            expectEqual(target.at(slot + late / 2, .tick), ["route? 192.0.2.1"])
            expectEqual(target.at(slot + late / 2, .route(to: server)), ["connect \(number) 192.0.2.1"])
            expectEqual(target.at(slot + late, .connected(number)), ["report ok"])
        }
        expectEqual(target.tickDue, 40_000)
    }

    @Test func `a first refusal is examined at once, and the next one of the schedule is published`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        expectEqual(target.at(10_002, .failed(2, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.tickDue, 10_002)
        expectEqual(target.at(10_002, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(10_002, .route(to: server)), ["connect 3 192.0.2.1"])
        expectEqual(target.at(10_003, .failed(3, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.tickDue, 20_000)
        _ = target.at(20_000, .tick)
        _ = target.at(20_000, .route(to: server))
        expectEqual(target.at(20_001, .failed(4, .connectionRefused)), ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        expectEqual(target.cause?.evidence["errno"], .text("ECONNREFUSED"))
        expectEqual(target.cause?.evidence["gateway"], .text("10.0.0.1"))
        expectEqual(target.tickDue, 30_000)
    }

    @Test func `silence is confirmed 3.1 seconds after its start`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        expectEqual(target.at(13_000, .tick), ["cancel 2", "neighbor? 10.0.0.1 on 2"])
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(13_001, .neighbor(gateway, .state(.reachable))), ["report tcp/timeout"])
        expectEqual(target.tickDue, 13_100)
    }

    @Test func `while no answer arrives, the address is tried again, and the hosts are asked before the deadline`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        expectEqual(target.at(10_000, .route(to: server)), ["connect 2 192.0.2.1"])
        expectEqual(target.tickDue, 10_500)
        expectEqual(target.at(10_500, .tick), ["connect 3 192.0.2.1"])
        expectEqual(target.tickDue, 11_250)
        expectEqual(target.at(11_250, .tick), ["connect 4 192.0.2.1"])
        expectEqual(target.tickDue, 12_300)
        expectEqual(target.at(12_300, .tick), [])
        expectEqual(target.tickDue, 13_000)
        // The second attempt succeeds, and the others are canceled.
        expectEqual(target.at(12_900, .connected(3)), ["cancel 2", "cancel 4", "report ok"])
    }

    @Test func `a refusal ends all attempts to the address`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(10_500, .tick)
        expectEqual(target.at(10_600, .failed(3, .connectionRefused)), ["cancel 2", "report tcp/refused"])
    }

    @Test func `fail-after 1 needs no confirmation`() throws {
        var target = try up(ProbeSettings(failAfter: 1))
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        expectEqual(target.at(10_001, .failed(2, .connectionReset)), ["report tcp/reset", "down tcp/reset 192.0.2.1 eth0"])
        expectEqual(target.tickDue, 20_000)
    }

    @Test func `recover-after counts successes of the schedule`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(recoverAfter: 2))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        expectEqual(target.at(5, .connected(1)), ["report ok"])
        expectEqual(target.tickDue, 10_000)
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        expectEqual(target.at(10_005, .connected(2)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `another cause of the same target state is published after as many equal results`() throws {
        var target = try up(ProbeSettings(failAfter: 2))
        var number: UInt64 = 2
        func fail(_ time: Int64, _ error: SystemErrorNumber) -> [String] {
            _ = target.at(time, .tick)
            _ = target.at(time, .route(to: server))
            defer { number += 1 }
            return target.at(time, .failed(number, error))
        }
        expectEqual(fail(10_000, .connectionRefused), ["report tcp/refused"])
        expectEqual(fail(10_001, .connectionRefused), ["report tcp/refused"])
        expectEqual(fail(20_000, .connectionRefused), ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        expectEqual(fail(30_000, .connectionReset), ["report tcp/reset"])
        expectEqual(fail(40_000, .connectionRefused), ["report tcp/refused"])
        expectEqual(fail(50_000, .connectionReset), ["report tcp/reset"])
        expectEqual(fail(60_000, .connectionReset), ["report tcp/reset", "down tcp/reset 192.0.2.1 eth0"])
    }

    @Test func `a change of cause keeps the state's beginning`() throws {
        var target = try up(ProbeSettings(failAfter: 1))
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(10_001, .failed(2, .connectionRefused))
        _ = target.at(20_000, .tick)
        _ = target.at(20_000, .route(to: server))
        _ = target.at(20_001, .failed(3, .connectionReset))
        expectEqual(target.published?.cause?.code, .reset)
        expectEqual(target.published?.statusMoment, Transcript.moment(10_001))
    }

    @Test func `late, repeated and unknown answers change nothing of a target`() throws {
        var target = try up()
        let due = target.tickDue
        let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))
        expectEqual(target.at(1, .connected(1)), [])
        expectEqual(target.at(1, .failed(77, .connectionRefused)), [])
        expectEqual(target.at(1, .found(1, "192.0.2.9")), [])
        expectEqual(target.at(1, .route(to: server)), [])
        expectEqual(target.at(1, .noRoute(to: "192.0.2.9")), [])
        expectEqual(target.at(1, .neighbor(gateway, .state(.failed))), [])
        expectEqual(target.at(1, .tick), [])
        expectEqual(target.tickDue, due)
    }

    @Test func `a missing route answer is awaited until the probe's deadline, and nothing is published`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        expectEqual(target.tickDue, 13_000)
        expectEqual(target.at(13_000, .tick), [])
        expectEqual(target.tickDue, 20_000)
    }

    @Test func `a resume cancels the attempt, probes at once and restarts the count of failures`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(10_001, .failed(2, .connectionRefused))
        _ = target.at(11_000, .tick)
        _ = target.at(11_000, .route(to: server))
        expectEqual(target.at(11_001, .resumed), ["cancel 3", "route? 192.0.2.1"])
        expectEqual(target.at(11_001, .route(to: server)), ["connect 4 192.0.2.1"])
        expectEqual(target.at(11_002, .failed(4, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.at(11_003, .failed(3, .connectionRefused)), [])
    }

    @Test func `an address of a family that is not configured is never probed`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(families: [.v6]))
        expectEqual(target.at(0, .begin), ["initial unknown", "unreachable dns/no-address-for-family 192.0.2.1"])
        expectNil(target.tickDue)
        expectEqual(target.at(5, .localStateChanged), [])
    }

    @Test func `a local server needs no link, and its timeout queries no neighbor`() throws {
        var target = try Transcript("127.0.0.1:80")
        (target.host.levels[2], target.host.levels[3]) = (.off, .off)
        target.host.pathCause = Cause(.link, .noCarrier, detail: "")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "127.0.0.1", over: 1, gateway: nil, kind: .local)), ["connect 1 127.0.0.1"])
        expectEqual(target.at(3000, .tick), ["cancel 1", "report tcp/timeout"])
    }

    @Test func `without the loopback interface, this machine's own addresses are unreachable`() throws {
        for address in ["127.0.0.1", "10.0.0.2"] {
            var target = try Transcript("\(address):80")
            target.host.levels[1] = .off
            _ = target.at(0, .begin)
            expectEqual(
                target.at(0, .route(to: address, over: 1, gateway: nil, kind: .local)),
                [
                    "unreachable link/interface-down \(address) lo"
                ])
        }
        // Without the addresses of the loopback interface, the kernel would send the packets to the gateway.
        var target = try Transcript("[::1]:80")
        target.host.levels[1] = .off
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "::1", over: 2, gateway: "fe80::1")), ["unreachable link/interface-down ::1 lo"])
    }

    @Test func `a probe bound to an interface queries the route over it`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interface: "wlan0"))
        expectEqual(target.at(0, .begin), ["initial unknown", "route? 192.0.2.1 over 3"])
        expectEqual(target.at(0, .route(to: server, over: 3, bound: 3)), ["connect 1 192.0.2.1 by wlan0"])
    }

    @Test func `a link-local address is probed over the interface of its zone`() throws {
        var target = try Transcript("[fe80::1%eth0]:22")
        expectEqual(target.at(0, .begin), ["initial unknown", "route? fe80::1 over 2"])
        expectEqual(target.at(0, .route(to: "fe80::1", gateway: nil, source: "fe80::2", bound: 2)), ["connect 1 fe80::1%2"])
    }

    @Test func `a link-local address without a zone gets the zone of its route`() throws {
        var target = try Transcript("[fe80::1]:22")
        expectEqual(target.at(0, .begin), ["initial unknown", "route? fe80::1"])
        expectEqual(target.at(0, .route(to: "fe80::1", over: 3, gateway: nil, source: "fe80::2")), ["connect 1 fe80::1%3"])
    }
}
