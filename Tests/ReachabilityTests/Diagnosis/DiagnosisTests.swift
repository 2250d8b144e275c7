import Certificates
import Expectations
import Testing

@testable import Reachability

/// The layers of a diagnosis, as a pure function of its evidence.
@Suite struct DiagnosisTests {
    /// A fault, with its evidence and its diagnosis.
    struct Fault: Sendable, CustomTestStringConvertible {
        var name: String
        var evidence: DiagnosisEvidence
        /// One mark for each layer: `+` works, `x` fails, `-` not used, `.` not reached, `?` unproven.
        var marks: String
        /// The conclusion without the target.
        var sentence: String

        init(_ name: String, _ evidence: DiagnosisEvidence, _ marks: String, _ sentence: String) {
            (self.name, self.evidence, self.marks, self.sentence) = (name, evidence, marks, sentence)
        }

        var testDescription: String { name }
    }

    @Test(arguments: faults) func `the layers and the conclusion of a fault`(fault: Fault) {
        let diagnosis = Diagnosis(fault.evidence)
        expectEqual(diagnosis.steps.map(\.layer), (fault.evidence.endpoint?.scheme ?? .tcp).kind.layers)
        expectEqual(diagnosis.steps.map { Self.mark($0.finding) }.joined(), fault.marks)
        expectEqual(diagnosis.sentence, fault.sentence)
        for step in diagnosis.steps where step.finding == .fails { #expect(!step.evidence.isEmpty || step.layer == .dns) }
        #expect(diagnosis.steps.allSatisfy { !$0.detail.isEmpty })
    }

    @Test func `after a redirect from http to https, the layer tls has the facts of that handshake`() throws {
        var evidence = Place.target(.up)
        evidence.endpoint = try Endpoint("http://192.0.2.9")
        func step() throws -> Diagnosis.Step { try #require(Diagnosis(evidence).steps.first { $0.layer == .tls }) }
        try expectEqual(step().finding, .notUsed)
        var levels = LevelResult()
        var facts = TLSHandshakeFacts(serverName: "192.0.2.9")
        (facts.isComplete, facts.version, facts.cipher) = (true, "TLSv1.3", "TLS_AES_256_GCM_SHA384")
        (levels.tls, levels.handshakeEnd, levels.handshakeNanoseconds) = (facts, .completed, 2_000_000)
        evidence.report?.levels = levels
        #expect(try step().finding == .works && step().evidence["version"] == .text("TLSv1.3"))
        try expectEqual(step().duration, .milliseconds(2))
        try expectEqual(step().detail, "the handshake is complete (TLSv1.3, TLS_AES_256_GCM_SHA384)")
    }

    /// A complete handshake with a certificate of this serial number.
    private static func facts(_ number: Int, errors: [ChainError] = []) -> TLSHandshakeFacts {
        var facts = TLSHandshakeFacts(serverName: "db.example")
        (facts.isComplete, facts.version, facts.cipher) = (true, "TLSv1.3", "TLS_AES_256_GCM_SHA384")
        facts.certificate = TLSCertificateFacts(
            subject: "CN=\(number)", issuer: "CN=Issuer", isSelfIssued: false, names: ["db.example"], nameCount: 1,
            notBefore: 0, notAfter: 86_400, sha256: "\(number)", serialNumber: "\(number)")
        (facts.chainLength, facts.chainNotAfter, facts.verificationErrors) = (1, 86_400, errors)
        return facts
    }

    @Test func `errors that --insecure ignores are named in the layer tls, and no date is called valid`() throws {
        var evidence = Place.target(.up)
        evidence.endpoint = try Endpoint("tls://192.0.2.9")
        var levels = LevelResult()
        let errors = [ChainError(code: 20, text: "no issuer", depth: 1), ChainError(code: 10, text: "expired")]
        (levels.tls, levels.handshakeEnd) = (Self.facts(1, errors: errors), .completed)
        evidence.report?.levels = levels
        let step = try #require(Diagnosis(evidence).steps.first { $0.layer == .tls })
        expectEqual(step.finding, .works)
        expectEqual(
            step.detail,
            "the handshake is complete (TLSv1.3, TLS_AES_256_GCM_SHA384); the errors of the certificate are ignored: "
                + "20 no issuer (depth 1), 10 expired")
        expectEqual(step.evidence["verify_errors"], .list(["20 no issuer (depth 1)", "10 expired"]))
    }

    @Test(arguments: [(Cause.Code.certificateExpired, Diagnosis.Finding.fails), (.certificateExpiring, .works)])
    func `if one address has another certificate, the layer tls has the facts of the one that the sentence names`(
        code: Cause.Code, finding: Diagnosis.Finding
    ) throws {
        var evidence = Place.named(.up, lookup: Place.lookup("192.0.2.9", "192.0.2.10"))
        evidence.endpoint = try Endpoint("tls://db.example")
        var levels = LevelResult()
        (levels.tls, levels.handshakeEnd) = (Self.facts(1), .completed)
        evidence.report?.levels = levels
        let bad = Cause(
            .tls, code, detail: "192.0.2.10 presents a certificate", evidence: TLSEvidence.evidence(of: Self.facts(2)))
        let failing = Place.target(.down, bad).update
        evidence.addresses = [
            AddressResult(Place.address("192.0.2.9"), update: evidence.update),
            AddressResult(Place.address("192.0.2.10"), update: failing),
        ]
        func expectFactsOfBadCertificate(_ diagnosis: Diagnosis) throws {
            #expect(diagnosis.status == .degraded && diagnosis.cause?.evidence["subject"] == .text("CN=2"))
            let step = try #require(diagnosis.steps.first { $0.layer == .tls })
            #expect(step.evidence["subject"] == .text("CN=2") && step.evidence["sha256"] == .text("2"))
            #expect(step.finding == finding && step.detail.contains("192.0.2.10 presents a certificate"))
        }
        // By the addresses that `why` probes, and by the verdict of the target itself.
        try expectFactsOfBadCertificate(Diagnosis(evidence))
        let degraded = Place.target(.degraded, Diagnosis(evidence).cause).update
        (evidence.update, evidence.addresses) = (degraded, [])
        try expectFactsOfBadCertificate(Diagnosis(evidence))
    }

    private static func mark(_ finding: Diagnosis.Finding) -> String {
        switch finding {
        case .works: "+"
        case .fails: "x"
        case .notUsed: "-"
        case .notReached: "."
        case .unproven: "?"
        }
    }

    // The order is link, address, route, neighbor, dns, firewall, network, tcp, tls, http.
    static let faults: [Fault] = [
        Fault(
            "up behind a router", Place.target(.up), "++++-+++--",
            "192.0.2.9:443 is up: 192.0.2.9 answers over eth0 via 10.0.0.1"),
        Fault(
            "up by name", Place.named(.up, lookup: Place.lookup("192.0.2.9")), "++++++++--",
            "db.example:443 is up: 192.0.2.9 answers over eth0 via 10.0.0.1"),
        Fault(
            "up on the link", Place.target(.up, inspection: Place.onLink()), "++++-+-+--",
            "192.0.2.9:443 is up: 192.0.2.9 answers over eth0"),
        Fault(
            "up on this machine", Place.target(.up, inspection: Place.local), "+++--+-+--",
            "192.0.2.9:443 is up: this machine (192.0.2.9) answers"),
        Fault(
            "up over a tunnel", Place.target(.up, inspection: Place.tunnel), "+++--+++--",
            "192.0.2.9:443 is up: 192.0.2.9 answers over tun0"),
        Fault(
            "refused", Place.target(.down, Place.cause(.tcp, .refused)), "++++-++x--",
            "192.0.2.9:443 is down: the fault (tcp/refused)"),
        Fault(
            "silent, and no sweep", Place.target(.down, Place.cause(.tcp, .timeout)), "++++-??x--",
            "192.0.2.9:443 is down: the fault (tcp/timeout)"),
        Fault(
            "silent, and the gateway's entry is stale",
            Place.target(.down, Place.cause(.tcp, .timeout), inspection: Place.routed(neighbor: .state(.stale))), "+++?-??x--",
            "192.0.2.9:443 is down: the fault (tcp/timeout)"),
        Fault(
            "silent, and the gateway's entry is reachable since before the probe",
            Place.target(
                .unreachable, Place.cause(.tcp, .timeout),
                inspection: Place.routed(neighbor: .state(.reachable, confirmedAgo: 8_000_000))), "+++?-??x--",
            "192.0.2.9:443 is unreachable: the fault (tcp/timeout)"),
        Fault(
            "silent, and two hops answer", Place.target(.down, Place.cause(.tcp, .timeout), hops: Place.hops), "++++-+?x--",
            "192.0.2.9:443 is down: the fault (tcp/timeout); the last hop that answers is 198.51.100.1, hop 2"),
        Fault(
            "silent, and no hop answers", Place.target(.unreachable, Place.cause(.tcp, .timeout), hops: []), "++++-??x--",
            "192.0.2.9:443 is unreachable: the fault (tcp/timeout); no hop answers"),
        Fault(
            "silent, and the first hop answered",
            Place.target(
                .down, Place.cause(.tcp, .timeout, ["first_hop": .text("answered")]),
                inspection: Place.routed(neighbor: .state(.stale))), "++++-??x--",
            "192.0.2.9:443 is down: the fault (tcp/timeout)"),
        Fault(
            "silent, and the server's host answers datagrams",
            Place.target(.down, Place.cause(.tcp, .timeout, ["host": .text("answered"), "first_hop": .text("answered")])),
            "++++-?+x--", "192.0.2.9:443 is down: the fault (tcp/timeout)"),
        Fault(
            "silent, and the server's host answers datagrams, and hops answer",
            Place.target(.down, Place.cause(.tcp, .timeout, ["host": .text("answered")]), hops: Place.hops), "++++-++x--",
            "192.0.2.9:443 is down: the fault (tcp/timeout); the last hop before it is 198.51.100.1, hop 2"),
        Fault(
            "a router prohibits it",
            Place.target(.unreachable, Place.cause(.network, .adminProhibited, ["hop": .text("198.51.100.1")])), "++++-+x.--",
            "192.0.2.9:443 is unreachable: the fault (network/admin-prohibited, hop 198.51.100.1)"),
        Fault(
            "the target's own filter",
            Place.target(.down, Place.cause(.network, .portFiltered, ["hop": .text("192.0.2.9")])), "++++-+x.--",
            "192.0.2.9:443 is down: the fault (network/port-filtered, hop 192.0.2.9)"),
        Fault(
            "inferred from another target",
            Place.target(
                .unreachable,
                Place.cause(.network, .hostUnreachable, ["hop": .text("198.51.100.1"), "inferred": .text("192.0.2.8:443")]),
                inspection: Place.routed(neighbor: .state(.stale))), "+++?-?x.--",
            "192.0.2.9:443 is unreachable: the fault (network/host-unreachable, hop 198.51.100.1)"),
        Fault(
            "this machine's filter", Place.target(.unreachable, Place.cause(.firewall, .localReject)), "++++-x..--",
            "192.0.2.9:443 is unreachable: the fault (firewall/local-reject)"),
        Fault(
            "the gateway is silent",
            Place.target(
                .unreachable, Place.cause(.neighbor, .gatewaySilent, ["gateway": .text("10.0.0.1"), "hop": .text("10.0.0.2")]),
                inspection: Place.routed(neighbor: .state(.failed))), "+++x-...--",
            "192.0.2.9:443 is unreachable: the fault (neighbor/gateway-silent, hop 10.0.0.1)"),
        Fault(
            "the host on the link is silent",
            Place.target(
                .unreachable, Place.cause(.neighbor, .hostSilent, ["hop": .text("10.0.0.2")]),
                inspection: Place.onLink(neighbor: .state(.failed))), "+++x-.-.--",
            "192.0.2.9:443 is unreachable: the fault (neighbor/host-silent)"),
        Fault(
            "no route",
            Place.target(.unreachable, Place.cause(.route, .noRoute), inspection: Place.refused, isProbed: false), "++x.-...--",
            "192.0.2.9:443 is unreachable: the fault (route/no-route)"),
        Fault(
            "no address",
            Place.target(.unreachable, Place.cause(.address, .noAddress), inspection: Place.refused, isProbed: false),
            "+x..-...--", "192.0.2.9:443 is unreachable: the fault (address/no-address)"),
        Fault(
            "no carrier",
            Place.target(
                .unreachable, Place.cause(.link, .noCarrier, ["interface": .text("eth0")]), inspection: Place.refused,
                isProbed: false), "x...-...--", "192.0.2.9:443 is unreachable: the fault (link/no-carrier)"),
        Fault(
            "no carrier, and the kernel still has the route",
            Place.target(
                .unreachable, Place.cause(.link, .noCarrier, ["interface": .text("eth0")]),
                inspection: Place.routed(neighbor: .state(.stale)), isProbed: false), "x...-...--",
            "192.0.2.9:443 is unreachable: the fault (link/no-carrier)"),
        Fault(
            "the name does not exist",
            Place.named(
                .down, Place.cause(.dns, .nameNotFound), lookup: Place.failure(.answered, rcode: 3),
                inspection: Place.routed(to: Place.resolver)), "++++x...--",
            "db.example:443 is down: the fault (dns/name-not-found)"),
        Fault(
            "the name server is silent",
            Place.named(
                .unreachable, Place.cause(.dns, .resolverSilent), lookup: Place.failure(.silent),
                inspection: Place.routed(to: Place.resolver, neighbor: .state(.stale))), "+++?x...--",
            "db.example:443 is unreachable: the fault (dns/resolver-silent)"),
        Fault(
            "no name server", Place.named(.unreachable, Place.cause(.dns, .noResolver)), "++??x...--",
            "db.example:443 is unreachable: the fault (dns/no-resolver)"),
        Fault(
            "IPv6 is broken, IPv4 works",
            Place.target(.degraded, Place.cause(.network, .hostUnreachable, ["hop": .text("2001:db8::1")])), "++++-+x+--",
            "192.0.2.9:443 is degraded: the fault (network/host-unreachable, hop 2001:db8::1); "
                + "192.0.2.9 answers over eth0 via 10.0.0.1"),
        Fault(
            "too much loss", Place.target(.degraded, Place.cause(.quality, .loss)), "++++-+++--",
            "192.0.2.9:443 is degraded: the fault (quality/loss); 192.0.2.9 answers over eth0 via 10.0.0.1"),
        Fault(
            "no descriptors left", Place.target(.unreachable, Place.cause(.local, .fileLimit)), "++++-???--",
            "192.0.2.9:443 is unreachable: the fault (local/file-limit)"),
        Fault(
            "one failure that nothing confirms", Place.target(.unknown, Place.cause(.tcp, .refused)), "++++-++x--",
            "the status of 192.0.2.9:443 is not confirmed; the last probe: the fault (tcp/refused)"),
        Fault(
            "no probe has ended", Place.target(.unknown, isProbed: false), "++++-???--",
            "the status of 192.0.2.9:443 is not known: no probe has ended"),
        Fault(
            "a satisfied path", DiagnosisEvidence(path: Place.path, inspection: Place.onLink(to: "10.0.0.1")), "++++?-----",
            "the path is satisfied: IPv4 is routed over eth0 via 10.0.0.1"),
        Fault(
            "a satisfied path without name servers",
            DiagnosisEvidence(path: Place.path(hasResolver: false), inspection: Place.onLink(to: "10.0.0.1")), "++++?-----",
            "the path is satisfied: IPv4 is routed over eth0 via 10.0.0.1; no name server is configured"),
        Fault(
            "an unsatisfied path",
            DiagnosisEvidence(path: Place.path(Place.cause(.route, .noRoute, ["family": .number(4)]))), "++x..-----",
            "the path is unsatisfied: the fault (route/no-route)"),
    ]

    @Test func `the last hop that answers is evidence of the failing layer and of the cause`() throws {
        let diagnosis = Diagnosis(Place.target(.down, Place.cause(.tcp, .timeout), hops: Place.hops))
        let tcp = try #require(diagnosis.steps.first { $0.layer == .tcp })
        #expect(tcp.evidence["last_hop"] == .text("198.51.100.1") && tcp.evidence["last_hop_ttl"] == .number(2))
        expectEqual(tcp.duration, .milliseconds(7))
        expectEqual(diagnosis.cause?.evidence["last_hop"], .text("198.51.100.1"))
        let network = try #require(diagnosis.steps.first { $0.layer == .network })
        expectEqual(network.detail, "10.0.0.1 (hop 1), 198.51.100.1 (hop 2) answer; nothing beyond hop 2 does")
    }

    @Test func `only a silent target behind a router needs a sweep`() {
        let silence = Place.cause(.tcp, .timeout)
        #expect(Place.target(.down, silence).needsSweep)
        #expect(Place.target(.unknown, silence).needsSweep)
        #expect(Place.target(.down, silence, inspection: Place.tunnel).needsSweep)
        #expect(!Place.target(.down, silence, inspection: Place.onLink()).needsSweep)
        #expect(!Place.target(.down, silence, inspection: Place.local).needsSweep)
        #expect(!Place.target(.down, silence, inspection: Place.refused).needsSweep)
        #expect(!Place.target(.down, Place.cause(.tcp, .refused)).needsSweep)
        #expect(!Place.target(.up).needsSweep)
    }

    @Test func `the route to the name server is inspected if the name has no address`() {
        let evidence = Place.named(.unreachable, Place.cause(.dns, .resolverSilent), lookup: Place.failure(.silent))
        expectEqual(evidence.destination, .resolver(.init(Place.address(Place.resolver))))
        expectEqual(Place.named(.up, lookup: Place.lookup("192.0.2.9")).destination, .server(Place.address("192.0.2.9")))
        expectEqual(DiagnosisEvidence(path: Place.path).destination?.address, Place.address("10.0.0.1"))
    }
}

/// Evidence about a host with eth0 (2) behind the gateway 10.0.0.1, and tun0 (4).
enum Place {
    static let resolver = "10.0.0.53"
    static let hops = [Hop(address("10.0.0.1"), distance: 1), Hop(address("198.51.100.1"), distance: 2)]

    static func address(_ text: String) -> IPAddress { IPAddress(text) ?? IPAddress(v4: 0) }

    static func cause(
        _ layer: Cause.Layer, _ code: Cause.Code, _ evidence: [String: Cause.Evidence] = ["errno": .text("E")]
    ) -> Cause {
        Cause(layer, code, detail: "the fault", evidence: evidence)
    }

    private static func interface(_ name: String, _ index: UInt32, _ type: InterfaceType, _ own: String) -> NetworkInterface {
        NetworkInterface(
            name: name, index: index, type: type, isVirtual: false, isExpensive: false, level: .routable,
            addresses: [IPPrefix(address(own), length: 24)])
    }

    private static let lo = interface("lo", 1, .loopback, "127.0.0.1")
    private static let eth0 = interface("eth0", 2, .wired, "10.0.0.2")
    private static let tun0 = interface("tun0", 4, .tunnel, "10.8.0.2")

    static let path = path()

    static func path(_ cause: Cause? = nil, hasResolver: Bool = true) -> NetworkPath {
        let isSatisfied = cause == nil
        return NetworkPath(
            status: isSatisfied ? .satisfied : .unsatisfied, interface: isSatisfied ? eth0 : nil,
            interfaceV4: isSatisfied ? eth0 : nil, supportsDNS: hasResolver,
            gateways: isSatisfied ? [.init(address("10.0.0.1"))] : [], interfaces: [eth0, tun0, lo], cause: cause)
    }

    static func routed(to text: String = "192.0.2.9", neighbor: NeighborAnswer = .state(.reachable, confirmedAgo: 0))
        -> RouteInspection
    {
        RouteInspection(
            RouteQuery(address(text)),
            route: .route(ChosenRoute(interface: 2, gateway: address("10.0.0.1"), source: address("10.0.0.2"))),
            neighbor: neighbor)
    }

    static func onLink(to text: String = "192.0.2.9", neighbor: NeighborAnswer = .state(.reachable, confirmedAgo: 0))
        -> RouteInspection
    {
        RouteInspection(
            RouteQuery(address(text)), route: .route(ChosenRoute(interface: 2, source: address("10.0.0.2"))), neighbor: neighbor)
    }

    static let local = RouteInspection(
        RouteQuery(address("192.0.2.9")),
        route: .route(ChosenRoute(kind: .local, interface: 1, source: address("192.0.2.9"))))
    static let tunnel = RouteInspection(
        RouteQuery(address("192.0.2.9")), route: .route(ChosenRoute(interface: 4, source: address("10.8.0.2"))),
        neighbor: .state(Neighbor.State(rawValue: 0x40)))
    static let refused = RouteInspection(RouteQuery(address("192.0.2.9")), route: .refused(errno: 101))

    static func lookup(_ addresses: String...) -> LookupAnswer {
        LookupAnswer(
            id: 1, addresses: addresses.map(address), answeredBy: .dns, server: .init(address(resolver)),
            v4: FamilyLookup(.addresses))
    }

    static func failure(_ outcome: NameServerExchange.Outcome, rcode: UInt8? = nil) -> LookupAnswer {
        LookupAnswer(
            id: 1, code: -2, answeredBy: .dns,
            v4: FamilyLookup(.failed, exchanges: [NameServerExchange(.init(address(resolver)), outcome, rcode: rcode)]))
    }

    static func target(
        _ state: StatusName, _ cause: Cause? = nil, inspection: RouteInspection = routed(), isProbed: Bool = true,
        hops: [Hop]? = nil
    ) -> DiagnosisEvidence {
        evidence("192.0.2.9:443", state, cause, address("192.0.2.9"), nil, inspection, isProbed: isProbed, hops)
    }

    static func named(
        _ state: StatusName, _ cause: Cause? = nil, lookup: LookupAnswer? = nil, inspection: RouteInspection? = nil
    ) -> DiagnosisEvidence {
        let found = lookup?.addresses.first
        return evidence("db.example:443", state, cause, found, lookup, inspection ?? (found == nil ? nil : routed()))
    }

    private static func evidence(
        _ text: String, _ state: StatusName, _ cause: Cause?, _ address: IPAddress?, _ lookup: LookupAnswer?,
        _ inspection: RouteInspection?, isProbed: Bool = true, _ hops: [Hop]? = nil
    ) -> DiagnosisEvidence {
        guard let endpoint = try? Endpoint(text) else { preconditionFailure("'\(text)' is no endpoint") }
        let answers = state == .up || state == .degraded
        let now = Transcript.moment(0)
        let report = ProbeReport(
            endpoint: endpoint, roundTrip: answers ? .milliseconds(5) : nil, address: address,
            resolution: lookup.map { _ in .milliseconds(3) }, lookup: lookup, connection: .milliseconds(7),
            cause: answers ? nil : cause, moment: now)
        let update = ServerUpdate(
            endpoint: endpoint, statusName: state, cause: state == .unknown ? nil : cause, since: now, address: address,
            interface: nil,
            roundTrip: answers ? .milliseconds(5) : nil, isInitial: false, moment: now)
        return DiagnosisEvidence(
            endpoint: endpoint, path: path, update: update, report: isProbed ? report : nil, inspection: inspection, hops: hops)
    }
}
