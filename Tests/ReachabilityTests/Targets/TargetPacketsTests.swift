import Expectations
import Testing

@testable import Reachability

private let server = "192.0.2.1"
private let own = IPAddress(v4: 0x0a00_0007)
private let own6 = IPAddress(v6: 0x2001_0db8_0000_0000, 7)

/// Targets whose packets have a source address or a mark, and targets with a name server of their own.
@Suite struct TargetPacketsTests {
    private func settings(
        from source: IPAddress? = nil, mark: UInt32 = 0, resolver: String? = nil, families: Set<IPAddress.Family> = [.v4, .v6]
    ) -> ProbeSettings {
        var settings = Transcript.unscheduled()
        (settings.sourceAddress, settings.mark, settings.families) = (source, mark, families)
        settings.resolver = resolver.flatMap { NameServerAddress($0) }
        return settings
    }

    @Test(
        arguments: [
            (own, 0, " from 10.0.0.7"), (nil, 7, " with the mark 0x7"), (own, .max, " from 10.0.0.7 with the mark 0xffffffff"),
        ] as [(IPAddress?, UInt32, String)])
    func `the route query and the packets have the source address and the mark`(
        source: IPAddress?, mark: UInt32, phrase: String
    ) throws {
        var target = try Transcript("192.0.2.1:443", settings(from: source, mark: mark))
        expectEqual(target.at(0, .begin), ["initial unknown", "route? 192.0.2.1\(phrase)"])
        expectEqual(target.at(0, .route(to: server)), ["connect 1 192.0.2.1\(phrase)"])
        expectEqual(target.at(5, .connected(1)), ["report ok", "up 192.0.2.1 eth0"])
        // The answer to the query of another packet is not that of this target.
        expectEqual(target.at(9, .localStateChanged), ["route? 192.0.2.1\(phrase)"])
        let other = RouteQuery(IPAddress(v4: 0xc000_0201), port: 443)
        expectEqual(target.at(9, .route(other, .refused(errno: 101))), [])
        expectEqual(target.at(9, .noRoute(to: server)), ["unreachable route/no-route 192.0.2.1"])
        expectEqual(target.cause?.detail, "there is no route to 192.0.2.1\(phrase)")
        expectEqual(target.cause?.evidence["source_address"], source.map { .text("\($0)") })
        expectEqual(target.cause?.evidence["mark"], mark == 0 ? nil : .text("0x" + String(mark, radix: 16)))
    }

    @Test(
        arguments: [
            (.missing, "no-address"), (.tentative, "tentative-address"), (.duplicate, "duplicate-address"),
        ] as [(AddressFault, String)])
    func `an IPv4 source address that the kernel refuses is the cause until the kernel accepts it`(
        fault: AddressFault, code: String
    ) throws {
        var target = try Transcript("192.0.2.1:443", settings(from: own))
        target.host.sourceFaults[own] = fault
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server, .invalid)), ["unreachable address/\(code) 192.0.2.1"])
        expectEqual(target.cause?.evidence["source_address"], .text("10.0.0.7"))
        target.host.sourceFaults = [:]
        expectEqual(target.at(30, .localStateChanged), ["route? 192.0.2.1 from 10.0.0.7"])
        expectEqual(target.at(30, .route(to: server)), ["connect 1 192.0.2.1 from 10.0.0.7"])
        expectEqual(target.at(35, .connected(1)), ["report ok", "up 192.0.2.1 eth0"])
    }

    @Test func `the kernel's route decides for an IPv4 source address that no interface has`() throws {
        // A local route to a prefix makes all of its addresses those of this machine.
        var target = try Transcript("192.0.2.1:443", settings(from: own))
        target.host.sourceFaults[own] = .missing
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .route(to: server)), ["connect 1 192.0.2.1 from 10.0.0.7"])
    }

    @Test func `an IPv6 source address that no interface has is the cause whatever the route is`() throws {
        var target = try Transcript("[2001:db8::1]:443", settings(from: own6))
        target.host.sourceFaults[own6] = .missing
        _ = target.at(0, .begin)
        expectEqual(
            target.at(0, .route(to: "2001:db8::1", gateway: "fe80::1", source: nil)),
            ["unreachable address/no-address 2001:db8::1"])
        target.host.sourceFaults = [:]
        _ = target.at(30, .localStateChanged)
        expectEqual(
            target.at(30, .route(to: "2001:db8::1", gateway: "fe80::1", source: nil)),
            ["connect 1 2001:db8::1 from 2001:db8::7"])
    }

    @Test func `an interface that the user named precedes a missing source address`() throws {
        var settings = settings(from: own)
        settings.interface = "eth0"
        var target = try Transcript("192.0.2.1:443", settings)
        target.host.sourceFaults[own] = .missing
        target.host.levels[2] = .noCarrier
        _ = target.at(0, .begin)
        let query = RouteQuery(IPAddress(v4: 0xc000_0201), interface: 2)
        expectEqual(
            target.at(0, .route(query, .refused(errno: 101))), ["unreachable link/no-carrier 192.0.2.1 eth0"])
    }

    @Test func `packets from a loopback address do not leave this machine`() throws {
        var target = try Transcript("192.0.2.1:443", settings(from: IPAddress(v4: 0x7f00_0001)))
        _ = target.at(0, .begin)
        expectEqual(target.at(0, .noRoute(to: server, .invalid)), ["unreachable route/no-route 192.0.2.1"])
        #expect(target.cause?.detail.contains("a loopback address") == true)
    }

    @Test func `a source address that is lost between the query and the connection is the cause`() throws {
        var target = try Transcript("192.0.2.1:443", settings(from: own))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        expectEqual(
            target.at(0, .failed(1, .addressNotAvailable, call: ProbeResult.bind)),
            ["report address/no-address", "unreachable address/no-address 192.0.2.1 eth0"])
        // The same errno of connect(2) is that of a machine without free ports.
        expectEqual(
            target.at(10_000, .tick) + target.at(10_000, .route(to: server))
                + target.at(10_000, .failed(2, .addressNotAvailable, call: "connect")),
            [
                "route? 192.0.2.1 from 10.0.0.7", "connect 2 192.0.2.1 from 10.0.0.7", "report local/port-exhausted",
                "unreachable local/port-exhausted 192.0.2.1 eth0",
            ])
    }

    @Test func `a mark that this process may not set has its remedy in the cause`() throws {
        var target = try Transcript("192.0.2.1:443", settings(mark: 7))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        expectEqual(
            target.at(0, .failed(1, .notPermitted, call: ProbeResult.markOption)),
            ["report local/not-permitted", "unreachable local/not-permitted 192.0.2.1 eth0"])
        #expect(target.cause?.detail.contains("0x7: give it CAP_NET_ADMIN") == true)
    }

    @Test func `only addresses of the source's family are asked for and tried`() throws {
        var target = try Transcript("server.example:443", settings(from: own))
        expectEqual(target.at(0, .begin), ["initial unknown", "resolve 1 server.example"])
        guard case .resolve(let request)? = target.effects.last else { throw ProbeNamespace.Failure(description: "no lookup") }
        expectEqual(request.families, [.v4])
        expectEqual(target.at(0, .found(1, "2001:db8::1", "192.0.2.1")), ["route? 192.0.2.1 from 10.0.0.7"])
    }

    @Test(
        arguments: [
            ("server.example:443", [.v6], "no address of server.example is of the families that are tried"),
            ("[2001:db8::1]:443", [.v4, .v6], "2001:db8::1 is not of the families that are tried"),
        ] as [(String, Set<IPAddress.Family>, String)])
    func `a target without a possible address of the source's family is unreachable`(
        endpoint: String, families: Set<IPAddress.Family>, detail: String
    ) throws {
        var target = try Transcript(endpoint, settings(from: own, families: families))
        #expect(target.at(0, .begin).last?.hasPrefix("unreachable dns/no-address-for-family") == true)
        expectEqual(target.cause?.detail, "\(detail); its source address 10.0.0.7 allows IPv4 alone")
        expectEqual(target.tickDue, nil)
    }

    @Test func `connections of other packets are no evidence for the target`() throws {
        var target = try Transcript("192.0.2.1:443", settings(mark: 7))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        _ = target.at(0, .failed(1, .connectionRefused))
        let success = PassiveReport.Outcome.success(address: IPAddress(v4: 0xc000_0201), roundTrip: .milliseconds(5))
        expectEqual(target.at(10, .reported(success)), [])
    }

    @Test func `the hosts on the way to a silent target are asked by its packets, and its first hop by plain ones`() throws {
        var target = try Transcript("192.0.2.1:443", settings(from: own))
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: server))
        var asked: [String] = []
        let machine = target.machine.handleSilence(in: target.host.localState)
        for case .askHost(let request) in machine {
            asked.append("\(request.query.host.address)\(request.query.selector?.phrase ?? "")")
        }
        for case .search(let request) in machine {
            asked.append("behind \(request.hop.address)\(request.silent.selector?.phrase ?? "")")
        }
        expectEqual(asked, ["10.0.0.1", "192.0.2.1 from 10.0.0.7", "behind 10.0.0.1 from 10.0.0.7"])
    }

    @Test func `the name of a target is resolved by its own name server`() throws {
        var target = try Transcript("server.example:443", settings(resolver: "192.0.2.53:5353"))
        expectEqual(target.at(0, .begin), ["initial unknown", "resolve 1 server.example by 192.0.2.53:5353"])
        // Nothing is known at the deadline, and no other name server is accused. resolv.conf may be empty.
        target.host.hasResolver = false
        expectEqual(target.at(3_000, .tick), ["report dns/resolver-silent"])
        expectEqual(target.cause?.evidence["resolver"], .text("192.0.2.53:5353"))
        expectEqual(target.cause?.detail, "the name server 192.0.2.53:5353 does not answer for server.example")
    }
}

extension TargetMachine {
    /// Lets the attempts stay silent. - Returns: the effects up to the deadline of the probe.
    fileprivate func handleSilence(in localState: LocalState) -> [Effect] {
        var (machine, effects): (TargetMachine, [Effect]) = (self, [])
        while let due = machine.deadline, due < 3_000_000_000 {
            let now = Moment(monotonicNanoseconds: due, wallClockNanoseconds: due)
            effects += machine.handle(.tick, in: localState, at: now)
        }
        return effects
    }
}
