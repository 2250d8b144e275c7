import Certificates
import Reachability

@testable import netwatch_service

/// The last probes of targets of ``PageSamples``.
extension PageSamples {
    /// A complete probe of `https://www.example/`.
    static func report(at time: Int64 = now - 4_000) -> ProbeReport {
        var facts = TLSHandshakeFacts(serverName: "www.example")
        (facts.isComplete, facts.version, facts.cipher) = (true, "TLSv1.3", "TLS_AES_256_GCM_SHA384")
        facts.certificate = TLSCertificateFacts(
            subject: "CN=www.example", issuer: "CN=Example CA R3,O=Example", isSelfIssued: false,
            names: ["www.example", "example"], nameCount: 2, notBefore: 1_793_404_800, notAfter: 1_801_180_799,
            sha256: "9c1a4f6d3b7e52088f0c6a1d2e3b4c5d6f7a8b9c0d1e2f3a4b5c6d7e8f901a2b", serialNumber: "04a1")
        (facts.chainLength, facts.chainNotAfter) = (3, 1_801_180_799)
        var levels = LevelResult()
        (levels.tls, levels.handshakeEnd, levels.handshakeNanoseconds) = (facts, .completed, 14_200_000)
        levels.http = HTTPProbeFacts(
            response: HTTPResponseFacts(status: 200, version: "1.1", receivedBytes: 5_920, bodyBytes: 5_611), mismatch: nil)
        (levels.processingNanoseconds, levels.transferNanoseconds) = (21_400_000, 1_100_000)
        var report = ProbeReport(
            endpoint: endpoint("https://www.example/"), roundTrip: .microseconds(11_800), address: address("198.51.100.9"),
            resolution: .microseconds(2_300), connection: .microseconds(12_100), moment: moment(time))
        report.lookup = LookupAnswer(
            id: 1, addresses: [address("198.51.100.9")], answeredBy: .dns, server: .init(address("192.0.2.53")),
            v4: FamilyLookup(.addresses))
        report.levels = levels
        return report
    }

    /// The kernel's route to `www.example`.
    static let routed = RouteInspection(
        RouteQuery(address("198.51.100.9"), port: 443),
        route: .route(ChosenRoute(interface: 2, gateway: address("192.0.2.1"), source: address("192.0.2.7"))),
        neighbor: .state(.reachable, confirmedAgo: 2_000_000_000))

    /// The history of a target, with its last probe.
    static func probed(_ state: RecordedState = .up, cause: Cause? = refused, span: BarSpan = .day) -> TargetDetail {
        var detail = detail(state, cause: cause, span: span)
        (detail.report, detail.inspection) = (report(), routed)
        return detail
    }
}
