import Expectations
import Testing

@testable import Reachability

/// The conclusions that the examination of a target adds to its verdict.
@Suite struct DiagnosisConclusionTests {
    private static let silence = Place.cause(.network, .upstreamSilent, ["gateway": .text("10.0.0.1")])
    private static let onLink = Place.cause(.neighbor, .hostSilent)
    private static let mute = HopAnswers(asked: [.datagram, .connection])

    private func silent(
        _ inspection: RouteInspection, hops: [Hop]? = [], firstHop: HopAnswers? = nil, examined: Duration? = .seconds(6)
    ) -> DiagnosisEvidence {
        let cause = inspection.chosen?.gateway == nil ? Self.onLink : Self.silence
        var evidence = Place.target(.unreachable, cause, inspection: inspection, hops: hops)
        (evidence.firstHop, evidence.examined) = (firstHop, examined)
        return evidence
    }

    private func line(_ evidence: DiagnosisEvidence) -> String {
        let diagnosis = Diagnosis(evidence)
        return diagnosis.status.rawValue
            + (diagnosis.cause.map { " \($0.layer.rawValue)/\($0.code.rawValue): \($0.detail)" } ?? "")
    }

    private let reachable = Place.routed(neighbor: .state(.reachable, confirmedAgo: 20_000_000_000))

    @Test func `a gateway whose entry fails during the examination is silent`() {
        for state in [Neighbor.State.failed, .incomplete] {
            expectEqual(
                line(silent(Place.routed(neighbor: .state(state)))),
                "unreachable neighbor/gateway-silent: the gateway 10.0.0.1 does not answer on its link")
            expectEqual(
                line(silent(Place.onLink(neighbor: .state(state)), hops: nil)), "unreachable neighbor/host-silent: the fault")
        }
    }

    @Test func `a gateway that answers no question is silent by inference`() {
        let evidence = silent(reachable, firstHop: Self.mute)
        expectEqual(
            line(evidence),
            "unreachable neighbor/gateway-silent: the gateway 10.0.0.1 gives no answer: not to datagrams, not to connections, "
                + "not to packets whose hop limit ends there")
        let cause = Diagnosis(evidence).cause
        expectEqual(cause?.evidence["inferred"], .text("datagram,connection,hop-limit"))
        #expect(cause?.evidence["first_hop"] == .text("silent") && cause?.evidence["neighbor_state"] == .text("REACHABLE"))
    }

    @Test func `a silent name server is behind a silent gateway if that gives no answer either`() {
        func unnamed(_ neighbor: NeighborAnswer, _ firstHop: HopAnswers?, hops: [Hop]? = []) -> DiagnosisEvidence {
            var evidence = Place.named(
                .unreachable, Place.cause(.dns, .resolverSilent, ["resolver": .text(Place.resolver)]),
                lookup: Place.failure(.silent), inspection: Place.routed(to: Place.resolver, neighbor: neighbor))
            (evidence.firstHop, evidence.hops) = (firstHop, hops)
            return evidence
        }
        let entry = NeighborAnswer.state(.reachable)
        #expect(unnamed(entry, nil).hopToAsk?.address == Place.address("10.0.0.1") && unnamed(entry, nil).sweepPort == 53)
        let silence = unnamed(entry, Self.mute)
        #expect(
            line(silence).hasPrefix("unreachable neighbor/gateway-silent: the gateway 10.0.0.1, which leads to the name server"))
        expectEqual(Diagnosis(silence).cause?.evidence["resolver"], .text(Place.resolver))
        #expect(line(unnamed(.state(.failed), nil)).hasPrefix("unreachable neighbor/gateway-silent"))
        let answered = unnamed(entry, HopAnswers(asked: [.datagram], answered: .datagram))
        expectEqual(line(answered), "unreachable dns/resolver-silent: the fault")
        expectEqual(line(unnamed(entry, Self.mute, hops: nil)), "unreachable dns/resolver-silent: the fault", "no sweep")
    }

    @Test func `one question is not enough to infer that a gateway is silent`() {
        expectEqual(
            line(silent(reachable, firstHop: HopAnswers(asked: [.connection]))), "unreachable network/upstream-silent: the fault")
        expectEqual(line(silent(reachable, hops: nil, firstHop: Self.mute)), "unreachable network/upstream-silent: the fault")
        expectEqual(line(silent(reachable)), "unreachable network/upstream-silent: the fault")
    }

    @Test func `a router behind the first hop proves that the server is at fault`() {
        let witnessed = silent(reachable, hops: Place.hops, firstHop: Self.mute)
        expectEqual(line(witnessed), "down tcp/timeout: 192.0.2.9 does not answer on port 443; 198.51.100.1 (hop 2) does")
        let evidence = Diagnosis(witnessed).cause?.evidence
        #expect(evidence?["first_hop"] == .text("answered") && evidence?["witness_hop"] == .number(2))
    }

    @Test func `a first hop that answers proves nothing about what is behind it`() {
        let upstream = "unreachable network/upstream-silent: the fault"
        let gateway = [Hop(Place.address("10.0.0.1"), distance: 1)]
        for evidence in [
            silent(reachable, hops: gateway, firstHop: Self.mute),
            silent(reachable, firstHop: HopAnswers(asked: [.echo], answered: .echo)),
            silent(Place.routed(neighbor: .state(.reachable, confirmedAgo: 5_000_000_000))),
        ] {
            expectEqual(line(evidence), upstream)
            expectEqual(Diagnosis(evidence).cause?.evidence["first_hop"], .text("answered"))
        }
    }

    @Test func `a confirmation before the first probe proves nothing`() {
        let inspection = Place.routed(neighbor: .state(.reachable, confirmedAgo: 7_000_000_000))
        expectEqual(line(silent(inspection)), "unreachable network/upstream-silent: the fault")
        expectEqual(line(silent(inspection, examined: nil)), "unreachable network/upstream-silent: the fault")
    }

    @Test func `a host on the link that answers nothing may filter everything`() {
        let inspection = Place.onLink(neighbor: .state(.reachable, confirmedAgo: 20_000_000_000))
        expectEqual(
            line(silent(inspection, hops: nil, firstHop: Self.mute)),
            "unreachable neighbor/host-silent: the fault, and gives no other answer: not to datagrams, not to connections")
        expectEqual(
            line(silent(inspection, hops: nil, firstHop: HopAnswers(asked: [.connection], answered: .connection))),
            "down tcp/timeout: 192.0.2.9 does not answer on port 443, although the host is alive")
    }

    @Test func `only a silent first hop that no probe has proved alive is asked`() {
        expectEqual(silent(reachable).hopToAsk?.address, Place.address("10.0.0.1"))
        expectEqual(silent(Place.onLink()).hopToAsk?.address, Place.address("192.0.2.9"))
        #expect(silent(Place.tunnel).hopToAsk == nil && silent(Place.local).hopToAsk == nil)
        let answered = Place.cause(.tcp, .timeout, ["first_hop": .text("answered")])
        expectNil(Place.target(.down, answered).hopToAsk)
        #expect(Place.target(.degraded, Self.silence).hopToAsk == nil && !Place.target(.degraded, Self.silence).needsSweep)
    }

    // MARK: The address layer

    private func withoutRoute(_ own: [Address]?, boundTo: String? = nil) -> DiagnosisEvidence {
        var evidence = Place.target(.unreachable, Place.cause(.route, .noRoute), inspection: Place.refused, isProbed: false)
        (evidence.ownAddresses, evidence.boundTo) = (own, boundTo)
        return evidence
    }

    private func address(_ text: String, _ interface: UInt32, _ flags: Address.Flags = []) -> Address {
        Address(interface: interface, prefix: IPPrefix(Place.address(text), length: 24), flags: flags)
    }

    @Test func `a route is missing because the path's interface has no address of the family`() {
        let tunnel = address("10.8.0.2", 4)
        expectEqual(
            line(withoutRoute([address("2001:db8::2", 2), tunnel])),
            "unreachable address/no-address: interface eth0 has no usable IPv4 address")
        expectEqual(Diagnosis(withoutRoute([])).cause?.evidence["interface"], .text("eth0"))
        expectEqual(line(withoutRoute([address("10.0.0.2", 2)])), "unreachable route/no-route: the fault")
        expectEqual(line(withoutRoute(nil)), "unreachable route/no-route: the fault")
    }

    @Test func `a tentative address is named as such`() {
        #expect(line(withoutRoute([address("10.0.0.2", 2, .tentative)])).hasPrefix("unreachable address/tentative-address: "))
        #expect(
            line(withoutRoute([address("10.0.0.2", 2, [.tentative, .duplicate])])).hasPrefix("unreachable address/duplicate-"))
    }

    @Test func `the interface that the user named decides`() {
        #expect(
            line(withoutRoute([address("10.0.0.2", 2)], boundTo: "tun0")).contains("interface tun0 has no usable IPv4 address"))
        expectEqual(line(withoutRoute([address("10.8.0.2", 4)], boundTo: "tun0")), "unreachable route/no-route: the fault")
        expectEqual(line(withoutRoute([], boundTo: "eth9")), "unreachable route/no-route: the fault")
    }

    @Test func `a path without an interface has one with a carrier that is no virtual one`() {
        var evidence = withoutRoute([])
        evidence.path = Place.path(Place.cause(.route, .noRoute))
        expectEqual(line(evidence), "unreachable address/no-address: interface eth0 has no usable IPv4 address")
    }

    // MARK: Addresses of a name

    private func named(_ results: (String, StatusName, Cause?)...) -> DiagnosisEvidence {
        var evidence = Place.named(.up, lookup: Place.lookup("192.0.2.9"))
        evidence.addresses = results.map { text, state, cause in
            let address = Place.address(text)
            let update = evidence.update.map {
                ServerUpdate(
                    endpoint: $0.endpoint, statusName: state, cause: cause, since: $0.moment, address: address, interface: nil,
                    roundTrip: nil, isInitial: false, moment: $0.moment)
            }
            return AddressResult(address, update: state == .unknown ? nil : update)
        }
        return evidence
    }

    @Test func `an address that fails degrades a target that answers`() {
        let refused = Place.cause(.tcp, .refused)
        expectEqual(
            line(named(("192.0.2.9", .up, nil), ("2001:db8::9", .unreachable, Place.cause(.network, .netUnreachable)))),
            "degraded network/net-unreachable: IPv6 is broken and IPv4 works: the fault")
        expectEqual(
            line(named(("192.0.2.9", .up, nil), ("192.0.2.10", .down, refused), ("192.0.2.11", .up, nil))),
            "degraded tcp/refused: 1 of 3 addresses fail: the fault")
        expectEqual(Diagnosis(named(("192.0.2.9", .up, nil), ("192.0.2.10", .down, refused))).steps[7].finding, .fails)
    }

    @Test func `an address without a route, without a verdict, or that answers degrades nothing`() {
        let noRoute = Place.cause(.route, .noRoute)
        expectEqual(line(named(("192.0.2.9", .up, nil), ("2001:db8::9", .unreachable, noRoute))), "up")
        expectEqual(line(named(("192.0.2.9", .up, nil), ("192.0.2.10", .unknown, nil))), "up")
        expectEqual(line(named(("192.0.2.9", .up, nil), ("192.0.2.10", .up, nil))), "up")
        expectEqual(line(named(("192.0.2.9", .down, Place.cause(.tcp, .refused)))), "up")
    }
}
