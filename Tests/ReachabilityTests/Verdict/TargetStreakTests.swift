import Testing

@testable import Reachability

private let server = "192.0.2.1"
private let gateway = Neighbor.Key(interface: 2, address: IPAddress(v4: 0x0a00_0001))

/// What a probe was told stands while later ones of the same row meet silence.
@Suite struct TargetStreakTests {
    /// A target, a clock that goes from probe to probe, and the numbers of the attempts.
    private struct Row {
        var target: Transcript
        var attempt: UInt64 = 0

        init(_ settings: ProbeSettings = ProbeSettings()) throws {
            target = try Transcript("192.0.2.1:443", settings)
            _ = target.at(0, .begin)
        }

        /// The next probe until its attempt is under way.
        mutating func probe(at time: Int64, over interface: UInt32 = 2) {
            if time > 0 { _ = target.at(time, .tick) }
            attempt += 1
            #expect(target.at(time, .route(to: server, over: interface)) == ["connect \(attempt) 192.0.2.1"])
        }

        mutating func told(at time: Int64, _ icmp: (UInt8, UInt8) = (3, 1), over interface: UInt32 = 2) -> [String] {
            probe(at: time, over: interface)
            return target.at(time, .failed(attempt, .hostUnreachable, icmp: icmp, from: "203.0.113.9"))
        }

        /// Ends at the deadline, three seconds after the time.
        mutating func silent(
            at time: Int64, _ neighbor: NeighborAnswer = .state(.reachable), over interface: UInt32 = 2
        ) -> [String] {
            probe(at: time, over: interface)
            let key = Neighbor.Key(interface: interface, address: gateway.address)
            _ = target.at(time + 3000, .tick)
            return target.at(time + 3000, .neighbor(key, neighbor))
        }
    }

    @Test func `a router that says it once in a while is believed in between`() throws {
        var row = try Row()
        #expect(row.told(at: 0) == ["report network/host-unreachable"])
        #expect(
            row.silent(at: 1000) == ["report network/host-unreachable", "unreachable network/host-unreachable 192.0.2.1 eth0"])
        #expect(row.target.cause?.evidence["earlier"] == .flag(true))
        #expect(row.target.cause?.evidence["hop"] == .text("203.0.113.9"))
        for time in [10_000, 20_000, 30_000] as [Int64] {
            #expect(row.silent(at: time) == ["report network/host-unreachable"])
        }
        #expect(row.told(at: 40_000) == ["report network/host-unreachable"])
        #expect(row.target.cause?.evidence["earlier"] == nil)
    }

    @Test func `what a router says later takes the place of what it said`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        #expect(
            row.told(at: 10_000, (3, 13)) == [
                "report network/admin-prohibited", "unreachable network/admin-prohibited 192.0.2.1 eth0",
            ])
        #expect(row.silent(at: 20_000) == ["report network/admin-prohibited"])
    }

    @Test func `a success ends the row`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        row.probe(at: 10_000)
        #expect(row.target.at(10_000, .connected(row.attempt)) == ["report ok", "up 192.0.2.1 eth0"])
        #expect(row.silent(at: 20_000) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a host that answers refutes the router`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        row.probe(at: 10_000)
        #expect(
            row.target.at(10_000, .failed(row.attempt, .connectionRefused))
                == ["report tcp/refused", "down tcp/refused 192.0.2.1 eth0"])
        #expect(row.silent(at: 20_000) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a resume ends the row`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        _ = row.target.at(5000, .resumed)
        row.attempt += 1
        _ = row.target.at(5000, .route(to: server))
        _ = row.target.at(8000, .tick)
        #expect(
            row.target.at(8000, .neighbor(gateway, .state(.reachable)))
                == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `a lost path ends the row`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        _ = row.target.at(4000, .localStateChanged)
        #expect(row.target.at(4000, .noRoute(to: server)) == ["unreachable route/no-route 192.0.2.1"])
        #expect(row.silent(at: 10_000) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test func `another route ends the row, also when the former one comes back`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.told(at: 0)
        #expect(row.silent(at: 10_000, over: 3) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 wlan0"])
        #expect(row.silent(at: 20_000) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
    }

    @Test(arguments: [.unknown, .absent, .state(.stale), .state(.probe)] as [NeighborAnswer])
    func `a gateway that was silent is so still when its entry says nothing`(neighbor: NeighborAnswer) throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        #expect(
            row.silent(at: 0, .state(.failed)) == [
                "report neighbor/gateway-silent", "unreachable neighbor/gateway-silent 192.0.2.1 eth0",
            ])
        #expect(row.silent(at: 10_000, neighbor) == ["report neighbor/gateway-silent"])
    }

    @Test func `a gateway that is reachable refutes that it is silent`() throws {
        var row = try Row(ProbeSettings(failAfter: 1))
        _ = row.silent(at: 0, .state(.failed))
        #expect(row.silent(at: 10_000) == ["report tcp/timeout", "down tcp/timeout 192.0.2.1 eth0"])
        #expect(row.silent(at: 20_000, .absent) == ["report tcp/timeout"])
    }

    // MARK: This machine's own word

    @Test func `the neighbor is asked before it is accused of what this machine itself says`() throws {
        for (answer, cause) in [
            (.state(.failed), "neighbor/gateway-silent"), (.state(.incomplete), "neighbor/gateway-silent"),
            (.unknown, "neighbor/gateway-silent"), (.absent, "firewall/local-reject"),
            (.state(.reachable), "firewall/local-reject"), (.state(.stale), "firewall/local-reject"),
        ] as [(NeighborAnswer, String)] {
            var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
            _ = target.at(0, .begin)
            _ = target.at(0, .route(to: server))
            #expect(
                target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2")) == ["neighbor? 10.0.0.1 on 2"])
            #expect(
                target.at(5, .neighbor(gateway, answer)) == ["report \(cause)", "unreachable \(cause) 192.0.2.1 eth0"],
                "\(answer)")
        }
    }

    @Test(arguments: [NeighborAnswer.state(.failed), .state(.incomplete), .state(.reachable)])
    func `of several gateways any may be the silent one`(other: NeighborAnswer) throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
        let second = Neighbor.Key(interface: 3, address: IPAddress(v4: 0x0a00_0101))
        target.nextHops = [gateway, second].map { Route.NextHop(interface: $0.interface, gateway: $0.address) }
        let isSilent = other != .state(.reachable)
        // What this machine says itself, and silence.
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        _ = target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2"))
        #expect(target.at(5, .neighbor(gateway, .state(.reachable))) == ["neighbor? 10.0.1.1 on 3"])
        let word = isSilent ? "neighbor/gateway-silent" : "firewall/local-reject"
        let place = isSilent ? "192.0.2.1 wlan0" : "192.0.2.1 eth0"
        #expect(target.at(5, .neighbor(second, other)) == ["report \(word)", "unreachable \(word) \(place)"])
        if isSilent { #expect(target.cause?.evidence["gateway"] == .text("10.0.1.1")) }

        _ = target.at(10_000, .tick)
        _ = target.at(10_000, .route(to: server))
        _ = target.at(13_000, .tick)
        _ = target.at(13_000, .neighbor(gateway, .state(.reachable)))
        let silence = isSilent ? "neighbor/gateway-silent" : "tcp/timeout"
        #expect(target.at(13_000, .neighbor(second, other)).first == "report \(silence)")
    }

    @Test func `a silent gateway is found also where the kernel named the link of a modem, which has none`() throws {
        var target = try Transcript("192.0.2.1:443", ProbeSettings(failAfter: 1))
        target.nextHops = [Route.NextHop(interface: 3), Route.NextHop(interface: 2, gateway: gateway.address)]
        let modem = Neighbor.Key(interface: 3, address: IPAddress(v4: 0xc000_0201))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server, over: 3, gateway: nil))
        _ = target.at(5, .failed(1, .hostUnreachable, icmp: (3, 1), from: "10.0.0.2"))
        #expect(target.at(5, .neighbor(modem, .absent)) == ["neighbor? 10.0.0.1 on 2"])
        let word = "neighbor/gateway-silent"
        #expect(target.at(5, .neighbor(gateway, .state(.failed))) == ["report \(word)", "unreachable \(word) 192.0.2.1 eth0"])
    }

    @Test func `a router's word and a refusal need no neighbor`() throws {
        for (number, icmp, from) in [
            (.hostUnreachable, (3, 1), "203.0.113.9"), (.connectionRefused, (3, 3), "10.0.0.2"),
        ] as [(SystemErrorNumber, (UInt8, UInt8), String)] {
            var target = try Transcript("192.0.2.1:443")
            _ = target.at(0, .begin)
            _ = target.at(0, .route(to: server))
            #expect(target.at(5, .failed(1, number, icmp: icmp, from: from)).first?.hasPrefix("report") == true)
        }
    }
}
