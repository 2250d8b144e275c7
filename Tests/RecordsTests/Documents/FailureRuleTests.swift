import Expectations
import Reachability
import RecordSamples
import Records
import Testing

@Suite struct FailureRuleTests {
    private let expiring = Cause(.tls, .certificateExpiring, detail: "the certificate expires in 3 days")

    private func rule(_ list: String? = nil, strict: Bool = false) throws -> FailureRule {
        var rule = FailureRule()
        rule.isStrict = strict
        if let list { try rule.add(list) }
        return rule
    }

    @Test func `a degraded server holds, except with --strict or a cause of --fail-on`() throws {
        try expectEqual(rule().verdict(.degraded, expiring), .holds)
        try expectEqual(rule(strict: true).verdict(.degraded, expiring), .doesNotHold)
        try expectEqual(rule("certificate-expiring").verdict(.degraded, expiring), .doesNotHold)
        try expectEqual(rule("loss,tls/certificate-expiring").verdict(.degraded, expiring), .doesNotHold)
        try expectEqual(rule("http/timeout,loss").verdict(.degraded, expiring), .holds)
        // The other results stay.
        for state in [StatusName.up, .down, .unreachable, .unknown] {
            try expectEqual(rule("loss", strict: true).verdict(state, nil), StatusDocument.Verdict(state))
        }
    }

    @Test func `the rule decides the result of a status document, its canary included`() throws {
        guard case .server(_, let degraded) = Samples.server(0, "tls://192.0.2.9", .degraded, cause: expiring),
            case .server(_, let up) = Samples.server(), case .path(let path) = Samples.hello
        else {
            Issue.record("not the samples")
            return
        }
        for (targets, canary) in [([up, degraded], ServerUpdate?.none), ([up], degraded), ([], degraded)] {
            func verdict(_ rule: FailureRule) -> StatusDocument.Verdict {
                StatusDocument(moment: Samples.moment(1), path: path, targets: targets, canary: canary, rule: rule).verdict
            }
            expectEqual(verdict(FailureRule()), .holds)
            try expectEqual(verdict(rule(strict: true)), .doesNotHold)
            try expectEqual(verdict(rule("certificate-expiring")), .doesNotHold)
            try expectEqual(verdict(rule("certificate-expired")), .holds)
        }
    }

    @Test func `a layer takes its own codes only, so that no check waits for a cause that cannot exist`() throws {
        for (layer, codes) in Cause.Code.byLayer {
            for code in Cause.Code.allCases {
                let text = "\(layer)/\(code)"
                guard !codes.contains(code) else {
                    #expect(try rule(text).names(Cause(layer, code, detail: "")))
                    continue
                }
                #expect(throws: FailureRule.ParseError.self, "\(text)") { try rule(text) }
            }
        }
    }

    @Test(arguments: ["", ",", "loss,", "los", "tls/", "tsl/reset", "/loss"]) func `a code that no cause has is an error`(
        list: String
    ) {
        #expect(throws: FailureRule.ParseError.self) { try rule(list) }
    }
}
