import Expectations
import Testing

@testable import Reachability

/// `down` needs a witness: an answer from behind the first hop since the probe began.
@Suite struct AttributionTests {
    private static let gateway = IPAddress(v4: 0x0a00_0001)
    private static let server = IPAddress(v4: 0xc000_0201)

    private let host = Transcript.Host()

    /// An attempt without an answer, from 0 s to 3 s, by default over eth0 through the gateway.
    private func silence(over gateway: IPAddress? = Self.gateway, interface: UInt32 = 2) -> FailedAttempt {
        var failure = FailedAttempt(
            candidate: Candidate(address: Self.server, port: 443, zone: 0, boundTo: 0),
            route: ChosenRoute(interface: interface, gateway: gateway), result: nil, elapsedNanoseconds: 3_000_000_000)
        failure.probeStarted = 0
        failure.ended = Moment(monotonicNanoseconds: 3_000_000_000, wallClockNanoseconds: 43_268_000_000_000)
        return failure
    }

    private func state(
        _ outcome: HostReply.Outcome, alive: Bool? = nil, used: Bool = false, before: Bool = false, errno: Int32 = 0
    ) -> HopBook.State {
        HopBook.State(
            isAlive: alive ?? (outcome == .answered), isUsed: used, reply: HostReply(outcome, errno: errno), hasAnswered: before)
    }

    private func verdict(_ failure: FailedAttempt) -> String {
        let finding = failure.finding(in: host.localState)
        return "\(finding.accusesServer ? "down" : "unreachable") \(finding.cause.layer)/\(finding.cause.code)"
    }

    /// Somebody behind the first hop, who has answered at 1 s.
    private func witness(
        _ kind: WitnessBook.Witness.Kind = .router, _ address: UInt32 = 0x0a08_0202, port: UInt16? = nil
    ) -> WitnessBook.Witness {
        WitnessBook.Witness(
            kind: kind, address: IPAddress(v4: address), port: port, distance: kind == .router ? 2 : nil, time: 1_000_000_000)
    }

    private func detail(_ failure: FailedAttempt) -> String { failure.cause(in: host.localState).detail }

    @Test func `silence without a sign of life of the gateway is unreachable`() {
        var failure = silence()
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        failure.neighbor = .state(.reachable)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        // The gateway has never answered a query, so its silence says nothing.
        failure.hop = state(.silent)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("unknown"))
        #expect(detail(failure).contains("; nothing behind the gateway 10.0.0.1 has answered: either"))
    }

    @Test func `silence behind a gateway that answers may be the provider's fault`() {
        var failure = silence()
        failure.hop = state(.answered)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("answered"))
        expectEqual(
            detail(failure),
            "192.0.2.1 does not answer on port 443; the gateway 10.0.0.1 is alive, but nothing behind it has answered: either the "
                + "connection behind it or the server is at fault; a second target in another network would tell "
                + "them apart")
        failure.hop = state(.silent, alive: true)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
    }

    @Test func `silence says since when nothing behind the gateway has answered`() throws {
        var failure = silence()
        failure.hop = state(.answered)
        failure.beyond = WitnessBook.State(last: witness(), hasRouters: true, silentNetworks: 1)
        // The probe has ended at 12:01:08, two seconds after the witness.
        expectEqual(
            detail(failure),
            "192.0.2.1 does not answer on port 443; the gateway 10.0.0.1 is alive, but nothing behind it has answered since "
                + "12:01:06 UTC: either the connection behind it or the server is at fault")
        expectEqual(failure.cause(in: host.localState).evidence["silent_since"], .text("1970-01-01T12:01:06.000Z"))
        failure.beyond?.silentNetworks = 2
        #expect(detail(failure).hasSuffix(" since 12:01:06 UTC: the connection behind it is at fault"))
        let cause = failure.cause(in: host.localState)
        let suspect = IncidentSuspects(cause, of: try Endpoint("192.0.2.1:443"), .unreachable).shared.first
        #expect(suspect?.subject == .init(.gateway, "10.0.0.1") && suspect?.scope == .path && suspect?.isProved == true)
    }

    @Test func `a witness behind the gateway proves that the server is at fault`() {
        var failure = silence()
        failure.beyond = WitnessBook.State(witness: witness(), last: witness())
        expectEqual(verdict(failure), "down tcp/timeout")
        expectEqual(detail(failure), "192.0.2.1 does not answer on port 443; 10.8.2.2 (hop 2) does")
        let evidence = failure.cause(in: host.localState).evidence
        expectEqual(evidence["witness"], .text("10.8.2.2"))
        expectEqual(evidence["witness_hop"], .number(2))
        expectEqual(evidence["witness_at"], .text("1970-01-01T12:01:06.000Z"))
        failure.beyond?.witness = witness(.target, 0xc633_6407, port: 80)
        expectEqual(detail(failure), "192.0.2.1 does not answer on port 443; 198.51.100.7:80 does")
        failure.beyond?.witness = witness(.nameServer, 0xc633_6435, port: 53)
        expectEqual(detail(failure), "192.0.2.1 does not answer on port 443; the name server 198.51.100.53 does")
    }

    @Test func `the gateway's own silence has precedence over a witness, which this machine may have made up`() {
        var failure = silence()
        failure.neighbor = .state(.reachable)
        failure.hop = state(.silent, before: true)
        failure.beyond = WitnessBook.State(witness: witness(.target, 0xc633_6407, port: 80))
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
    }

    /// A router's report that it cannot reach another host of the server's network.
    private static let hostReport = HopBook.Report(
        target: IPAddress(v4: 0xc000_0202), port: 443, code: .hostUnreachable,
        reporter: ProbeResult.Reporter(origin: 2, type: 3, code: 1, offender: gateway), time: 0)

    @Test func `silence beside a host that a router cannot reach is inferred, because the router limits its reports`() {
        var failure = silence()
        failure.hop = state(.answered)
        failure.hop?.hostReport = Self.hostReport
        expectEqual(verdict(failure), "unreachable network/host-unreachable")
        expectEqual(failure.cause(in: host.localState).evidence["inferred"], .text("192.0.2.2"))
        failure.host = state(.answered)
        expectEqual(verdict(failure), "down tcp/timeout", "the host answers datagrams")
    }

    @Test func `a gateway that has just reported a host is silent only if its silence lasts`() {
        var failure = silence()
        failure.hop = state(.silent, before: true)
        failure.hop?.hostReport = Self.hostReport
        failure.hop?.silentSince = 0
        expectEqual(verdict(failure), "unreachable network/host-unreachable")
        failure.hop?.silentSince = -4_000_000_000
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
    }

    @Test func `silence of a server whose host answers on another port is the server's fault`() {
        var failure = silence()
        failure.host = state(.answered)
        expectEqual(verdict(failure), "down tcp/timeout")
        expectEqual(
            failure.cause(in: host.localState).detail, "192.0.2.1 does not answer on port 443, although the host is alive")
    }

    @Test func `a server on the link that was confirmed during the probe is at fault, one confirmed before may be off`() {
        var failure = silence(over: nil)
        failure.neighbor = .state(.reachable, confirmedAgo: 2_900_000_000)
        expectEqual(verdict(failure), "down tcp/timeout")
        failure.neighbor = .state(.stale, confirmedAgo: 2_900_000_000)
        expectEqual(verdict(failure), "down tcp/timeout")
        failure.neighbor = .state(.reachable, confirmedAgo: 3_100_000_000)
        expectEqual(verdict(failure), "unreachable neighbor/host-silent")
        expectEqual(detail(failure), "192.0.2.1 does not answer, and nothing shows that its host is alive")
        failure.probeStarted = -2_000_000_000
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test
    func `a server on the link whose address another host has is not at fault, and the cause is confirmed by a second probe`() {
        var failure = silence(over: nil)
        failure.hop = state(.silent)
        failure.hop?.linkAddress = [2, 0, 0, 0, 0, 1]
        failure.neighbor = .state(.reachable, confirmedAgo: 1_000_000_000, linkAddress: [2, 0, 0, 0, 0, 1])
        expectEqual(verdict(failure), "down tcp/timeout")
        expectEqual(detail(failure), "192.0.2.1 does not answer on port 443, although its host answers on the link")
        expectEqual(failure.cause(in: host.localState).evidence["witness_at"], .text("1970-01-01T12:01:07.000Z"))
        failure.neighbor = .state(.reachable, confirmedAgo: 1_000_000_000, linkAddress: [2, 0, 0, 0, 0, 0xa2])
        expectEqual(verdict(failure), "unreachable address/duplicate-address")
        expectEqual(
            detail(failure),
            "another host answers for 192.0.2.1 on its link: 02:00:00:00:00:a2 in place of 02:00:00:00:00:01, and not on port 443"
        )
        #expect(!failure.finding(in: host.localState).isCertain)
        // An entry that is older than the failures says nothing.
        failure.neighbor = .state(.reachable, confirmedAgo: 9_000_000_000, linkAddress: [2, 0, 0, 0, 0, 0xa2])
        expectEqual(verdict(failure), "unreachable neighbor/host-silent")
        failure.streakBegan = -7_000_000_000
        expectEqual(verdict(failure), "unreachable address/duplicate-address")
    }

    @Test func `a gateway that was confirmed during the probe is alive`() {
        var failure = silence()
        failure.neighbor = .state(.reachable, confirmedAgo: 2_900_000_000)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("answered"))
        failure.neighbor = .state(.reachable, confirmedAgo: 3_100_000_000)
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("unknown"))
    }

    @Test func `a gateway that answered queries before and does not now is silent, whatever its neighbor entry says`() {
        var failure = silence()
        failure.neighbor = .state(.reachable)
        failure.hop = state(.silent, before: true)
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("silent"))
        failure.hop = state(.silent, alive: true, before: true)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
    }

    @Test func `the gateway's own silence has precedence over another target's answer, which may be made by this machine`() {
        var failure = silence()
        failure.neighbor = .state(.reachable)
        failure.hop = state(.silent, used: true, before: true)
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
        // The kernel confirms the entry if the connection really used the gateway.
        failure.neighbor = .state(.reachable, confirmedAgo: 1_000_000_000)
        failure.beyond = WitnessBook.State(witness: witness(.target, 0xc633_6407, port: 80))
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test func `another target's answer proves the route over a gateway that answers no queries`() {
        var failure = silence()
        failure.hop = state(.silent, used: true)
        failure.beyond = WitnessBook.State(witness: witness(.target, 0xc633_6407, port: 80))
        expectEqual(verdict(failure), "down tcp/timeout")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("answered"))
    }

    @Test(arguments: [.state(.incomplete), .state(.failed)] as [NeighborAnswer])
    func `nothing can have come over a gateway without a neighbor entry`(neighbor: NeighborAnswer) {
        var failure = silence()
        failure.neighbor = neighbor
        failure.hop = state(.silent, used: true)
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
    }

    @Test func `a host on the link that answered queries before and does not now is silent`() {
        var failure = silence(over: nil)
        failure.neighbor = .state(.reachable)
        failure.hop = state(.silent, before: true)
        expectEqual(verdict(failure), "unreachable neighbor/host-silent")
        // The host answers neighbor discovery, and filters all else.
        failure.neighbor = .state(.reachable, confirmedAgo: 1_000_000_000)
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test func `a hop that was confirmed since its first silence answers no queries any more, so its silence says nothing`() {
        var failure = silence()
        failure.hop = state(.silent, before: true)
        failure.hop?.silentSince = -40_000_000_000
        failure.neighbor = .state(.stale, confirmedAgo: 44_000_000_000)
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
        failure.neighbor = .state(.reachable, confirmedAgo: 42_000_000_000)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("unknown"))
        failure.neighbor = .state(.reachable, confirmedAgo: 2_000_000_000)
        expectEqual(failure.cause(in: host.localState).evidence["first_hop"], .text("answered"))
        failure.neighbor = .state(.failed, confirmedAgo: 42_000_000_000)
        expectEqual(verdict(failure), "unreachable neighbor/gateway-silent")
    }

    @Test func `a machine that refuses datagrams to the server has a local packet filter`() {
        var failure = silence()
        failure.hop = state(.answered)
        failure.host = state(.refused, errno: 1)
        expectEqual(verdict(failure), "unreachable firewall/local-drop")
        expectEqual(failure.cause(in: host.localState).evidence["scope"], .text("address"))
        failure.host = state(.refused, errno: 24)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
    }

    @Test func `a machine that refuses all datagrams may pass TCP, so it is not known to filter the server`() {
        var failure = silence()
        failure.host = state(.refused, errno: 1)
        failure.hop = state(.refused, errno: 1)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        failure.beyond = WitnessBook.State(witness: witness())
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test func `a tunnel that has carried answers, and sends and receives nothing now, is silent`() {
        var failure = silence(over: nil, interface: 4)
        failure.tunnel = LinkCounters(received: 0, sent: 3)
        expectEqual(verdict(failure), "unreachable network/upstream-silent", "nothing inside has ever answered")
        failure.beyond = WitnessBook.State(last: witness(.target, 0xc000_0201, port: 443), silentNetworks: 1)
        expectEqual(verdict(failure), "unreachable network/tunnel-silent")
        failure.tunnel = LinkCounters(received: 1, sent: 3)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        #expect(detail(failure).contains("the tunnel tun0 is alive, but nothing behind it has answered since 12:01:06 UTC"))
        failure.tunnel = LinkCounters(received: 0, sent: 0)
        expectEqual(verdict(failure), "unreachable network/upstream-silent")
        failure.beyond?.witness = witness()
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test func `an ICMP error from the server's own address is the server's fault, that of a router is not`() {
        var failure = silence()
        func reported(from offender: IPAddress, code: UInt8) -> ProbeResult {
            ProbeResult(
                id: 1, errno: 111, call: "handshake",
                reporter: ProbeResult.Reporter(origin: 2, type: 3, code: code, offender: offender))
        }
        failure.result = reported(from: Self.server, code: 3)
        expectEqual(verdict(failure), "down network/port-filtered")
        expectEqual(failure.cause(in: host.localState).evidence["hop"], .text("192.0.2.1"))
        failure.result = reported(from: IPAddress(v4: 0xcb00_7109), code: 3)
        expectEqual(verdict(failure), "unreachable network/port-filtered")
        failure.result = reported(from: IPAddress(v4: 0xcb00_7109), code: 13)
        expectEqual(verdict(failure), "unreachable network/admin-prohibited")
    }

    @Test func `a router's report about another target of the network explains silence`() {
        var failure = silence()
        let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress(v4: 0xcb00_7109))
        failure.hop = state(.answered)
        failure.hop?.report = HopBook.Report(
            target: IPAddress(v4: 0xc000_0202), port: 80, code: .adminProhibited, reporter: reporter, time: 0)
        expectEqual(verdict(failure), "unreachable network/admin-prohibited")
        let evidence = failure.cause(in: host.localState).evidence
        #expect(evidence["inferred"] == .text("192.0.2.2") && evidence["hop"] == .text("203.0.113.9"))
        // The server's host has answered, so the router does forward.
        failure.host = state(.answered)
        expectEqual(verdict(failure), "down tcp/timeout")
    }

    @Test func `a router's report about the same port explains silence although the host is alive`() {
        var failure = silence()
        let reporter = ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress(v4: 0xcb00_7109))
        failure.host = state(.answered)
        failure.hop = state(.answered)
        failure.hop?.report = HopBook.Report(
            target: IPAddress(v4: 0xc000_0202), port: 443, code: .adminProhibited, reporter: reporter, time: 0)
        expectEqual(verdict(failure), "unreachable network/admin-prohibited")
    }

    private func ownSilence(_ state: HopBook.State?) -> FailedAttempt {
        var failure = silence(over: nil, interface: 1)
        failure.route = ChosenRoute(kind: .local, interface: 1)
        failure.host = state
        return failure
    }

    @Test func `silence of one port of this machine's own address is the server's fault`() {
        expectEqual(verdict(ownSilence(nil)), "down tcp/timeout")
        expectEqual(verdict(ownSilence(state(.answered))), "down tcp/timeout")
        expectEqual(
            ownSilence(state(.answered)).cause(in: host.localState).detail,
            "this machine (192.0.2.1) does not answer on port 443, although it answers on others: "
                + "its server accepts no more connections, or its packet filter drops them")
    }

    @Test(arguments: [(.silent, 0), (.refused, 1)] as [(HostReply.Outcome, Int32)])
    func `an own address that answers no datagrams either is dropped by this machine's packet filter`(
        outcome: HostReply.Outcome, errno: Int32
    ) {
        let failure = ownSilence(state(outcome, errno: errno))
        expectEqual(verdict(failure), "unreachable firewall/local-drop")
        let cause = failure.cause(in: host.localState)
        #expect(cause.evidence["scope"] == .text("address") && (cause.evidence["errno"] != nil) == (errno != 0))
        expectEqual(cause.detail, "this machine's packet filter drops packets to its own address 192.0.2.1")
    }

    @Test func `an own address that could not be asked is not known to be dropped`() {
        expectEqual(verdict(ownSilence(state(.refused, errno: 24))), "down tcp/timeout")
    }
}
