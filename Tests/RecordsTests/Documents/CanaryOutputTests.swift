import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Console
@testable import Records

/// The canary in the output of `status` and `why`, and in their exit codes.
@Suite struct CanaryOutputTests {
    private static let portal = Cause(
        .http, .captivePortal, detail: "a login page of the network answers for canary.example: it redirects to portal.lan",
        evidence: ["location": .text("http://portal.lan/login"), "status": .number(302)])

    private func canary(_ state: StatusName, _ cause: Cause? = nil) throws -> ServerUpdate {
        guard case .server(_, let update) = Samples.server(0, "http://canary.example/204", state, cause: cause) else {
            throw CocoaError(.featureUnsupported)
        }
        return update
    }

    private func status(_ canary: ServerUpdate?, targets: [ServerUpdate] = []) throws -> StatusDocument {
        StatusDocument(
            moment: Samples.moment(9), path: try RecordEncoderTests.update(Samples.hello), targets: targets, canary: canary)
    }

    @Test func `a failing canary gives exit code 1, an unknown one 2, and neither hides another failure`() throws {
        func verdicts(_ canary: ServerUpdate?, _ target: ServerUpdate? = nil) throws -> [StatusDocument.Verdict] {
            var evidence = target == nil ? WhySamples.path : WhySamples.up
            if let target { evidence.update = target }
            return [
                try status(canary, targets: [target].compactMap { $0 }).verdict,
                WhyDocument(moment: Samples.moment(9), evidence: evidence, canary: canary).verdict,
            ]
        }
        try expectEqual(verdicts(nil), [.holds, .holds])
        try expectEqual(verdicts(canary(.up)), [.holds, .holds])
        try expectEqual(verdicts(canary(.degraded, Self.portal)), [.holds, .holds])
        try expectEqual(verdicts(canary(.down, Self.portal)), [.doesNotHold, .doesNotHold])
        try expectEqual(verdicts(canary(.unreachable, Samples.noCarrier)), [.doesNotHold, .doesNotHold])
        try expectEqual(verdicts(canary(.unknown)), [.undetermined, .undetermined])
        try expectEqual(verdicts(canary(.down, Self.portal), canary(.unknown)), [.doesNotHold, .doesNotHold])
        try expectEqual(verdicts(canary(.unknown), canary(.down, Samples.refused)), [.doesNotHold, .doesNotHold])
        try expectEqual(verdicts(canary(.up), canary(.unknown)), [.undetermined, .undetermined])
    }

    @Test func `status shows the canary after the targets, as they are shown`() throws {
        let document = try status(canary(.down, Self.portal), targets: [canary(.up)])
        expectEqual(
            StatusText(document: document, style: TextStyle()).lines.suffix(6),
            [
                "", "targets",
                "  + http://canary.example/204  up  1.25 ms from 192.0.2.9 via eth0 (wired), response in 1.3 ms",
                "", "canary",
                "  x http://canary.example/204  down  http/captive-portal: a login page of the network answers for canary.example: "
                    + "it redirects to portal.lan",
            ])
    }

    @Test func `why concludes about the canary in a line of its own`() throws {
        func lines(_ canary: ServerUpdate?, columns: Int? = nil) -> [String] {
            let document = WhyDocument(moment: Samples.moment(9), evidence: WhySamples.path, canary: canary)
            return WhyText(document: document, style: TextStyle(), columns: columns).canaryLines
        }
        let name = "the canary http://canary.example/204"
        expectEqual(lines(nil), [])
        try expectEqual(
            lines(canary(.up)),
            ["+ \(name) is up: its answer is the known one, so no captive portal answers in its place"])
        try expectEqual(
            lines(canary(.down, Self.portal)), ["x \(name) is down: \(Self.portal.detail) (http/captive-portal)"])
        try expectEqual(
            lines(canary(.unreachable, Samples.noCarrier)),
            ["x \(name) is unreachable: eth0 has no carrier (link/no-carrier)"])
        try expectEqual(lines(canary(.unknown)), ["? the status of \(name) is not known: no probe has ended"])
        try expectEqual(lines(canary(.up), columns: 60).count, 2)
    }

    @Test func `the canary in JSON has the keys of a target, and the path is unchanged`() throws {
        func object(_ bytes: [UInt8]) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
        }
        let failing = try canary(.down, Self.portal)
        let why = WhyDocument(moment: Samples.moment(9), evidence: WhySamples.path, canary: failing)
        for document in [try object(status(failing).encode(with: Samples.encoder)), try object(why.encode())] {
            let canary = try #require(document["canary"] as? [String: Any])
            #expect(canary["target"] as? String == "http://canary.example/204" && canary["status"] as? String == "down")
            expectEqual((canary["cause"] as? [String: Any])?["code"] as? String, "captive-portal")
            #expect(canary["initial"] as? Bool == true && canary["type"] == nil && canary["seq"] == nil)
            let path = (document["path"] as? [String: Any])?["status"] ?? document["status"]
            expectEqual(path as? String, "satisfied")
        }
        #expect(try object(status(nil).encode(with: Samples.encoder))["canary"] is NSNull)
    }
}
