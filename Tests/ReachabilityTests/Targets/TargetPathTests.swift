import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"

/// Loss and return of the route to a target.
@Suite struct TargetPathTests {
    private func up(_ settings: ProbeSettings = Transcript.unscheduled()) throws -> Transcript {
        var target = try Transcript("192.0.2.1:443", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        try #require(target.at(0, .connected(1)) == ["report ok", "up 192.0.2.1 eth0"])
        return target
    }

    @Test(
        arguments: [
            (.networkUnreachable, "route/no-route"), (.hostUnreachable, "route/route-unreachable"),
            (.accessDenied, "route/route-prohibited"), (.invalid, "route/route-blackhole"),
        ] as [(SystemErrorNumber, String)])
    func `a refused route is published at once, without a probe`(number: SystemErrorNumber, cause: String) throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server, number)), ["unreachable \(cause) 192.0.2.1"])
        expectEqual(target.cause?.evidence["errno"], .text(number.name))
    }

    @Test(
        arguments: [
            (.off, "link/interface-down"), (.noCarrier, "link/no-carrier"), (.dormant, "link/dormant"),
        ] as [(LinkLevel, String)])
    func `a target whose route uses a link without carrier is unreachable`(level: LinkLevel, cause: String) throws {
        var target = try Transcript("192.0.2.1:443")
        target.host.levels[2] = level
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: server)), ["unreachable \(cause) 192.0.2.1 eth0"])
    }

    @Test(arguments: [.degradedCarrier, .carrier, .degraded, .enslaved] as [LinkLevel])
    func `a target whose route uses a link with carrier is probed`(level: LinkLevel) throws {
        var target = try Transcript("192.0.2.1:443")
        target.host.levels[2] = level
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: server)), ["connect 1 192.0.2.1"])
    }

    @Test func `if the path has no carrier, a missing route's cause is the link`() throws {
        var target = try Transcript("192.0.2.1:443")
        target.host.pathCause = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server)), ["unreachable link/no-carrier 192.0.2.1"])
    }

    @Test func `a blackhole route is the cause whatever the path`() throws {
        var target = try Transcript("192.0.2.1:443")
        target.host.pathCause = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server, .invalid)), ["unreachable route/route-blackhole 192.0.2.1"])
    }

    @Test func `a target on the link is probed without a default route`() throws {
        var target = try Transcript("10.0.0.7:80")
        target.host.pathCause = Cause(.route, .noRoute, detail: "there is no default route")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: "10.0.0.7", gateway: nil)), ["connect 1 10.0.0.7"])
    }

    @Test func `if lo is off, a missing route to loopback has lo as its cause`() throws {
        var target = try Transcript("127.0.0.1:80")
        target.host.levels[1] = .off
        target.host.pathCause = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: "127.0.0.1")), ["unreachable link/interface-down 127.0.0.1 lo"])
    }

    @Test func `a target bound to a missing interface is unreachable until the interface appears`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interface: "usb0"))
        expectEqual(target.at(0, .begin), ["initial unknown", "unreachable link/no-interface 192.0.2.1"])
        target.host.names[9] = "usb0"
        target.host.levels[9] = .routable
        expectEqual(target.at(500, .localStateChanged), ["route? 192.0.2.1 over 9"])
        expectEqual(target.at(500, .route(to: server, over: 9, bound: 9)), ["connect 1 192.0.2.1 by usb0"])
    }

    @Test func `the loss of a target's route is published in the turn of the route's answer`() throws {
        var target = try up()
        expectEqual(target.at(4000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4000, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
    }

    @Test func `without a route nothing is probed, and the routes are queried again once an interval`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        _ = target.at(4000, .noRoute(to: server))
        for slot in [10_000, 20_000, 30_000] as [Int64] {
            expectEqual(target.tickDue, slot)
            expectEqual(target.at(slot, .tick), ["route? 192.0.2.1"])
            expectEqual(target.at(slot, .noRoute(to: server)), [])
        }
    }

    @Test func `a target whose route comes back is probed at once`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        _ = target.at(4000, .noRoute(to: server))
        expectEqual(target.at(6000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(6000, .route(to: server)), ["connect 2 192.0.2.1"])
        expectEqual(target.at(6003, .connected(2)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `a route that is back is published within 50 ms, also if the server stays silent`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(interval: .seconds(10)))
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
        _ = target.at(6000, .localStateChanged)
        expectEqual(target.at(6000, .route(to: server)), ["connect 1 192.0.2.1"])
        expectEqual(target.tickDue, 6050)
        expectEqual(target.at(6050, .tick), ["unknown 192.0.2.1"])
        expectEqual(target.at(6060, .connected(1)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `if the route is back and the server refuses, the old cause is replaced at once`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        _ = target.at(4000, .noRoute(to: server))
        _ = target.at(6000, .localStateChanged)
        _ = target.at(6000, .route(to: server))
        expectEqual(target.at(6001, .failed(2, .connectionRefused)), ["report tcp/refused"])
        expectEqual(target.tickDue, 6001)
        _ = target.at(6001, .tick)
        _ = target.at(6001, .route(to: server))
        expectEqual(target.at(6002, .failed(3, .connectionRefused)), ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
    }

    @Test func `another cause of a missing path is published at once`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        target.host.levels[2] = .noCarrier
        expectEqual(target.at(4000, .route(to: server)), ["unreachable link/no-carrier 192.0.2.1 eth0"])
        target.host.levels[2] = .off
        expectEqual(target.at(4200, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4200, .route(to: server)), ["unreachable link/interface-down 192.0.2.1 eth0"])
    }

    @Test func `network changes close to each other are checked after 20 ms, and none is lost`() throws {
        var target = try up()
        expectEqual(target.at(4000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4000, .route(to: server)), [])
        expectEqual(target.at(4001, .localStateChanged), [])
        expectEqual(target.at(4002, .localStateChanged), [])
        expectEqual(target.tickDue, 4020)
        expectEqual(target.at(4020, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(4020, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
    }

    @Test func `a network change that leaves the route unchanged causes no probe`() throws {
        var target = try up()
        expectEqual(target.at(4000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4000, .route(to: server)), [])
        expectEqual(target.tickDue, 10_000)
    }

    @Test func `a route with another interface, gateway or source causes a probe at once`() throws {
        var target = try up()
        expectEqual(target.at(4000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4000, .route(to: server, over: 3, gateway: "10.1.0.1")), ["connect 2 192.0.2.1"])
        expectEqual(target.at(4010, .connected(2)), ["report ok", "up 192.0.2.1 wlan0"])
        // The slot at 10,000 is more than half an interval away, so the grid continues.
        expectEqual(target.tickDue, 10_000)
    }

    @Test func `a route that is lost during an attempt ends the attempt`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        expectEqual(target.at(10_500, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(
            target.at(10_500, .noRoute(to: server)),
            ["report route/no-route", "cancel 2", "unreachable route/no-route 192.0.2.1"])
        expectEqual(target.at(10_600, .connected(2)), [])
    }

    @Test func `a route that changes during an attempt restarts the probe, at most three times`() throws {
        var target = try up()
        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        var time: Int64 = 10_000
        for attempt in 2...4 {
            time += 200
            let over: UInt32 = attempt.isMultiple(of: 2) ? 3 : 2
            expectEqual(target.at(time, .localStateChanged), ["route? 192.0.2.1"])
            expectEqual(
                target.at(time, .route(to: server, over: over)),
                ["cancel \(attempt)", "connect \(attempt + 1) 192.0.2.1"])
        }
        _ = target.at(time + 200, .localStateChanged)
        expectEqual(target.at(time + 200, .route(to: server, over: 2)), [])
        expectEqual(target.at(time + 300, .connected(5)), ["report ok", "up 192.0.2.1 wlan0"])
        // The result may be out of date, so the next probe comes soon.
        expectEqual(target.tickDue, time + 1000)
    }

    @Test func `a renamed interface of a target's route is published without a probe`() throws {
        var target = try up()
        target.host.names[2] = "lan0"
        expectEqual(target.at(4000, .localStateChanged), ["up 192.0.2.1 lan0", "route? 192.0.2.1"])
    }

    @Test func `a long loss of the route is published once, and its return causes one probe`() throws {
        var target = try up()
        var lines: [String] = []
        for time in stride(from: 1000, to: 9000, by: 200) as StrideTo<Int64> {
            lines += target.at(time, .localStateChanged).filter { !$0.hasPrefix("route?") }
            lines += target.at(time, time < 5000 ? .noRoute(to: server) : .route(to: server)).filter { !$0.hasPrefix("route?") }
        }
        expectEqual(lines, ["unreachable route/no-route 192.0.2.1", "connect 2 192.0.2.1"])
    }

    // MARK: Addresses that belong to no host

    @Test(arguments: [
        ("224.0.0.1:80", "224.0.0.1 is a multicast address, and TCP connects to single hosts only"),
        ("[ff02::1]:80", "ff02::1 is a multicast address, and TCP connects to single hosts only"),
        ("255.255.255.255:80", "255.255.255.255 is a broadcast address, and TCP connects to single hosts only"),
    ])
    func `a multicast or broadcast target is unreachable on any path`(endpoint: String, detail: String) throws {
        for pathCause in [nil, Cause(.link, .noCarrier, detail: "eth0 has no carrier")] {
            var target = try Transcript(endpoint)
            target.host.pathCause = pathCause
            _ = target.at(0, .begin)
            let asked = target.effects.compactMap { effect in
                if case .askRoute(let query) = effect { "\(query.destination)" } else { nil }
            }
            let address = try #require(asked.first)
            expectEqual(target.at(0, .noRoute(to: address)), ["unreachable route/no-route \(address)"])
            expectEqual(target.cause?.detail, detail)
        }
    }

    @Test func `a network's broadcast address is recognized by the kernel's route`() throws {
        var target = try Transcript("10.0.0.255:80")
        _ = target.at(0, .begin)
        expectEqual(
            target.at(0, .route(to: "10.0.0.255", gateway: nil, kind: .broadcast)), ["unreachable route/no-route 10.0.0.255"])
        expectEqual(target.cause?.detail, "10.0.0.255 is a broadcast address, and TCP connects to single hosts only")
    }

    @Test(arguments: [("0.0.0.0", "127.0.0.1"), ("[::]", "::1")])
    func `an unspecified address is not probed, and the detail names the address of this machine`(
        text: String, loopback: String
    ) throws {
        var target = try Transcript("\(text):80")
        let address = text.filter { !"[]".contains($0) }
        expectEqual(
            target.at(0, .begin), ["initial unknown", "unreachable dns/unusable-address \(address)"])
        expectEqual(
            target.cause?.detail,
            "\(address) is the unspecified address, to which no connection is possible; \(loopback) is this machine")
        expectNil(target.tickDue)
        expectEqual(target.at(1000, .localStateChanged), [])
        expectEqual(target.at(2000, .tick), [])
    }

    // MARK: Queries without an answer

    @Test func `an unanswered route query keeps the known route and is asked again`() throws {
        var target = try up()
        expectEqual(target.at(4000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4000, .unanswered(server)), [])
        expectEqual(target.tickDue, 5000)
        expectEqual(target.at(5000, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(5000, .route(to: server)), [])
        expectEqual(target.tickDue, 10_000)
        // A probe uses the known route.
        expectEqual(target.at(10_000, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(10_000, .unanswered(server)), ["connect 2 192.0.2.1"])
        expectEqual(target.at(10_005, .connected(2)), ["report ok"])
        expectEqual(target.tickDue, 11_000)
    }

    @Test func `a missing route stays missing while the kernel does not answer`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        _ = target.at(4000, .noRoute(to: server))
        expectEqual(target.at(6000, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(6000, .unanswered(server)), [])
        expectEqual(target.tickDue, 7000)
        expectEqual(target.at(7000, .tick), ["route? 192.0.2.1"])
        expectEqual(target.at(7000, .route(to: server)), ["connect 2 192.0.2.1"])
    }

    @Test func `a target whose route query was never answered publishes nothing until the first answer`() throws {
        var target = try Transcript("192.0.2.1:443")
        _ = target.at(0, .begin)
        for time in [0, 1000, 2000] as [Int64] {
            expectEqual(target.at(time, .unanswered(server)), [])
            expectEqual(target.tickDue, time + 1000)
            expectEqual(target.at(time + 1000, .tick), ["route? 192.0.2.1"])
        }
        expectEqual(target.at(3000, .route(to: server)), ["connect 1 192.0.2.1"])
    }

    @Test func `with two addresses, an unanswered route query of one keeps the other's missing route unpublished`() throws {
        var target = try Transcript("server.example:443")
        _ = target.at(0, .begin)
        _ = target.at(0, .found(1, "192.0.2.1", "192.0.2.2"))
        _ = target.at(0, .noRoute(to: "192.0.2.1"))
        expectEqual(target.at(0, .unanswered("192.0.2.2")), [])
        _ = target.at(1000, .tick)
        _ = target.at(1000, .noRoute(to: "192.0.2.1"))
        expectEqual(target.at(1000, .noRoute(to: "192.0.2.2")), ["unreachable route/no-route 192.0.2.1"])
    }

    @Test func `a network change does not wait for the route query that is due again`() throws {
        var target = try up()
        _ = target.at(4000, .localStateChanged)
        _ = target.at(4000, .unanswered(server))
        expectEqual(target.at(4200, .localStateChanged), ["route? 192.0.2.1"])
        expectEqual(target.at(4200, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
    }
}
