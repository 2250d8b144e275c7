import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Console
@testable import Records

/// Evidence for diagnoses of the target 192.0.2.9:22 behind the gateway 198.18.0.1.
enum WhySamples {
    private static let target = Samples.endpoint("192.0.2.9:22")
    private static let server = Samples.address("192.0.2.9")
    private static let inspection = RouteInspection(
        RouteQuery(server, port: 22),
        route: .route(ChosenRoute(interface: 2, gateway: Samples.address("198.18.0.1"), source: Samples.address("192.0.2.7"))))

    static let silence = Cause(
        .tcp, .timeout, detail: "192.0.2.9 does not answer on port 22",
        evidence: ["port": .number(22), "words": .text("two words")])

    /// A cause whose evidence has several texts.
    static let redirected = evidence(
        .down, Cause(.http, .status, detail: "no", evidence: ["redirects": .list(["http://a/", "http://b/ c"])]))
    static let expired = evidence(
        .down,
        Cause(
            .tls, .certificateExpired, detail: "192.0.2.9 presents a certificate that expired on 2026-11-01, 3 days ago",
            evidence: [
                "subject": .text("CN=server"), "issuer": .text("CN=Intermediate"),
                "names": .list(["server.example", "192.0.2.9"]),
                "not_before": .text("2026-01-01T00:00:00Z"), "not_after": .text("2026-11-01T00:00:00Z"),
                "chain_length": .number(2), "chain_not_after": .text("2026-11-01T00:00:00Z"), "version": .text("TLSv1.3"),
                "verify_errors": .list(["10 certificate has expired"]), "cipher": .text("TLS_AES_256_GCM_SHA384"),
            ]))
    /// A server that staples a response: `status` is its result.
    static func stapling(_ status: String) -> DiagnosisEvidence {
        let evidence: [String: Cause.Evidence] = [
            "subject": .text("CN=server"), "chain_length": .number(2), "stapled": .text(status),
            "stapled_signer": .text("CN=Responder"),
            "stapled_this_update": .text("2026-11-01T00:00:00Z"), "stapled_next_update": .text("2026-11-02T00:00:00Z"),
            "revoked_at": .text("2026-10-31T00:00:00Z"), "revocation_reason": .text("keyCompromise"),
        ]
        return self.evidence(.down, Cause(.tls, .certificateRevoked, detail: "revoked", evidence: evidence))
    }
    static let up = evidence(.up, nil)
    static let silent = evidence(.down, silence, hops: [Hop(Samples.address("198.18.0.1"), distance: 1)])
    /// A name with an address that answers, one that is silent, and one to which this machine has no route.
    static let partial: DiagnosisEvidence = {
        var evidence = up
        let noRoute = Cause(.route, .noRoute, detail: "there is no route to 2001:db8::9")
        evidence.addresses = [
            AddressResult(server, update: up.update),
            AddressResult(Samples.address("192.0.2.10"), update: update(.down, silence, Samples.address("192.0.2.10"))),
            AddressResult(Samples.address("2001:db8::9"), update: update(.unreachable, noRoute, Samples.address("2001:db8::9"))),
        ]
        return evidence
    }()
    static let path = DiagnosisEvidence(path: Samples.satisfied)
    static let unsatisfied = DiagnosisEvidence(path: Samples.unsatisfied)

    private static func evidence(_ state: StatusName, _ cause: Cause?, hops: [Hop]? = nil) -> DiagnosisEvidence {
        let report = ProbeReport(
            endpoint: target, roundTrip: cause == nil ? .microseconds(1250) : nil, address: server,
            connection: cause == nil ? .microseconds(1300) : .seconds(3), cause: cause, moment: Samples.moment(1))
        return DiagnosisEvidence(
            endpoint: target, path: Samples.satisfied, update: update(state, cause, server), report: report,
            inspection: inspection, hops: hops)
    }

    static func update(_ state: StatusName, _ cause: Cause?, _ address: IPAddress) -> ServerUpdate {
        ServerUpdate(
            endpoint: target, statusName: state, cause: cause, since: Samples.moment(1), address: address,
            interface: Samples.eth0,
            roundTrip: cause == nil ? .microseconds(1250) : nil, isInitial: false, moment: Samples.moment(1))
    }
}

@Suite struct WhyTextTests {
    private func lines(
        _ evidence: DiagnosisEvidence, _ style: TextStyle = TextStyle(isUnicode: true), columns: Int? = nil
    ) -> [String] {
        WhyText(document: WhyDocument(moment: Samples.moment(2), evidence: evidence), style: style, columns: columns).lines
    }

    @Test func `each layer has a mark, a time, a sentence and its evidence, and the last line is the conclusion`() {
        expectEqual(
            lines(WhySamples.silent),
            [
                "✓ link                eth0 (wired) is switched on and has carrier",
                "                      interface=eth0 level=routable type=wired",
                "✓ address             packets are sent from 192.0.2.7",
                "                      interface=eth0 source=192.0.2.7",
                "✓ route               192.0.2.9 is routed over eth0 via 198.18.0.1",
                "                      destination=192.0.2.9 gateway=198.18.0.1 interface=eth0",
                "✓ neighbor            the gateway 198.18.0.1 answers",
                "                      gateway=198.18.0.1",
                "· dns                 not used: the target is an address",
                "✓ firewall            this machine's packet filter lets packets to 192.0.2.9 pass",
                "                      address=192.0.2.9",
                "? network   0.000 ms  only 198.18.0.1 (hop 1) answers; nothing beyond hop 1 does",
                "                      hops_answered=1 last_hop=198.18.0.1 last_hop_ttl=1",
                "✗ tcp         3.00 s  192.0.2.9 does not answer on port 22",
                "                      last_hop=198.18.0.1 last_hop_ttl=1 port=22 words=\"two words\"",
                "· tls                 not asked: the target is tcp",
                "· http                not asked: the target is tcp",
                "",
                "✗ 192.0.2.9:22 is down: 192.0.2.9 does not answer on port 22 (tcp/timeout); the last hop that answers is 198.18.0.1, "
                    + "hop 1",
            ])
    }

    @Test func `the addresses of a name follow the layers, and one that fails degrades the target`() {
        let lines = lines(WhySamples.partial)
        expectEqual(
            lines.suffix(5),
            [
                "✓ 192.0.2.9    1.250 ms  answers",
                "✗ 192.0.2.10             tcp/timeout: 192.0.2.9 does not answer on port 22",
                "· 2001:db8::9            route/no-route: there is no route to 2001:db8::9",
                "",
                "? 192.0.2.9:22 is degraded: 1 of 2 addresses fail: 192.0.2.9 does not answer on port 22 (tcp/timeout); 192.0.2.9 "
                    + "answers over eth0 via 198.18.0.1",
            ])
        expectEqual(WhyDocument(moment: Samples.moment(2), evidence: WhySamples.partial).verdict, .holds)
    }

    @Test func `a name with more addresses than are probed says so`() {
        var evidence = WhySamples.partial
        let addresses = (1...200).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
        evidence.report?.lookup = LookupAnswer(id: 1, addresses: addresses)
        expectEqual(lines(evidence).suffix(3).first, "  3 of the 200 addresses are probed")
    }

    @Test func `a pipe has neither colors nor characters beyond ASCII`() {
        let text = lines(WhySamples.silent, TextStyle()).joined(separator: "\n")
        #expect(text.utf8.allSatisfy { $0 < 0x80 } && !text.contains("\u{1b}"))
        #expect(text.contains("\nx tcp         3.00 s  192.0.2.9 does not answer"))
        #expect(lines(WhySamples.up, TextStyle(isColored: true)).first?.hasPrefix("\u{1b}[32m+\u{1b}[0m link") == true)
    }

    @Test(arguments: [30, 60, 80, 200]) func `lines are wrapped to the width of the terminal`(columns: Int) {
        let lines = lines(WhySamples.silent, columns: columns)
        #expect(lines.allSatisfy { DisplayWidth.columns($0) < max(columns, 22 + 21 + 20) })
        let words = { (lines: [String]) in lines.joined(separator: " ").split(separator: " ") }
        expectEqual(words(lines), words(self.lines(WhySamples.silent)))
    }

    @Test func `without a target, the path is explained`() {
        let satisfied = lines(WhySamples.path)
        #expect(satisfied.contains("? dns                 192.0.2.53 is configured; no name was looked up"))
        expectEqual(
            satisfied.last, "✓ the path is satisfied: IPv4 and IPv6 are routed over eth0 via 192.0.2.1 and fe80::1%eth0")
        let unsatisfied = lines(WhySamples.unsatisfied)
        expectEqual(unsatisfied.first, "✗ link                eth0 has no carrier")
        expectEqual(unsatisfied.last, "✗ the path is unsatisfied: eth0 has no carrier (link/no-carrier)")
    }

    @Test func `evidence with several texts is a quoted list, and an array in JSON`() throws {
        #expect(lines(WhySamples.redirected).contains { $0.contains(#"redirects="http://a/, http://b/ c""#) })
        let document = WhyDocument(moment: Samples.moment(2), evidence: WhySamples.redirected)
        let value = try JSONSerialization.jsonObject(with: Data(document.encode())) as? [String: Any]
        let evidence = (value?["cause"] as? [String: Any])?["evidence"] as? [String: Any]
        expectEqual(evidence?["redirects"] as? [String], ["http://a/", "http://b/ c"])
    }

    @Test func `the facts of a certificate follow the conclusion, a line each, and leave the line of evidence`() {
        let lines = lines(WhySamples.expired)
        expectEqual(
            lines.suffix(11),
            [
                "✗ tls                 192.0.2.9 presents a certificate that expired on 2026-11-01, 3 days ago",
                "                      cipher=TLS_AES_256_GCM_SHA384 version=TLSv1.3",
                "· http                not asked: the target is tcp",
                "",
                "✗ 192.0.2.9:22 is down: 192.0.2.9 presents a certificate that expired on 2026-11-01, 3 days ago "
                    + "(tls/certificate-expired)",
                "  subject  CN=server",
                "  names    server.example, 192.0.2.9",
                "  issuer   CN=Intermediate",
                "  valid    2026-01-01T00:00:00Z to 2026-11-01T00:00:00Z",
                "  chain    2 certificates",
                "  errors   10 certificate has expired",
            ])
        #expect(self.lines(WhySamples.expired, columns: 30).allSatisfy { DisplayWidth.columns($0) < 63 })
    }

    @Test(arguments: [("revoked", ""), ("stale", "stale, ")])
    func `a stapled response has a line with its result, its signer and its time`(status: String, beginning: String) {
        let lines = lines(WhySamples.stapling(status))
        expectEqual(
            lines.last,
            "  stapled  \(beginning)revoked at 2026-10-31T00:00:00Z (keyCompromise), signed by CN=Responder, "
                + "2026-11-01T00:00:00Z to 2026-11-02T00:00:00Z")
        #expect(!lines.contains { $0.contains("stapled=") || $0.contains("revoked_at=") })
    }

    @Test func `the document has every layer and the exit code follows from the verdict`() throws {
        let document = WhyDocument(moment: Samples.moment(2), evidence: WhySamples.silent)
        let value = try #require(
            try JSONSerialization.jsonObject(with: Data(document.encode())) as? [String: Any])
        let layers = try #require(value["layers"] as? [[String: Any]])
        expectEqual(layers.map { $0["layer"] as? String ?? "" }, Endpoint.Scheme.tcp.kind.layers.map(\.rawValue))
        expectEqual(layers.map { $0["ok"] as? Bool }, [true, true, true, true, nil, true, nil, false, nil, nil])
        #expect(layers[7]["ms"] as? Int == 3000 && layers[0]["ms"] is NSNull && value["canary"] is NSNull)
        expectEqual((value["cause"] as? [String: Any])?["code"] as? String, "timeout")
        expectEqual(value["status"] as? String, "down")
        expectEqual(value["address"] as? String, "192.0.2.9")
        expectEqual(value["interface"] as? String, "eth0")
        expectEqual(document.verdict, .doesNotHold)
        expectEqual(WhyDocument(moment: Samples.moment(2), evidence: WhySamples.up).verdict, .holds)
        expectEqual(WhyDocument(moment: Samples.moment(2), evidence: WhySamples.path).verdict, .holds)
        expectEqual(WhyDocument(moment: Samples.moment(2), evidence: WhySamples.unsatisfied).verdict, .doesNotHold)
        var unknown = WhySamples.up
        unknown.update = nil
        expectEqual(WhyDocument(moment: Samples.moment(2), evidence: unknown).verdict, .undetermined)
    }
}
