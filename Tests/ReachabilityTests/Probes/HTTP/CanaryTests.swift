import Expectations
import FoundationEssentials
import Testing

@testable import Reachability

/// Settings of a canary: the answer that they expect, and what a probe does with a redirect.
@Suite struct CanaryTests {
    private func canary(_ change: (inout HTTPProbeSettings) throws -> Void = { _ in }) throws -> ProbeSettings {
        var settings = ProbeSettings()
        settings.http.isCanary = true
        try change(&settings.http)
        return settings
    }

    @Test func `a canary without an expectation expects 204, and the default of other URLs is unchanged`() throws {
        try expectEqual(canary().http.expectation, HTTPExpectation(statuses: StatusRanges("204")))
        try expectEqual(canary { $0.versions = ["1.1"] }.http.expectation.statuses, StatusRanges("204"))
        expectEqual(HTTPProbeSettings().expectation, HTTPExpectation())
    }

    @Test func `a declared expectation of a canary replaces 204`() throws {
        try expectEqual(canary { try $0.setStatuses("200") }.http.expectation.statuses, StatusRanges("200"))
        for settings in try [
            canary { try $0.expectBody("success") }, canary { try $0.expectBody("login", mustMatch: false) },
            canary { try $0.expectField("X-Canary", "yes") },
        ] {
            #expect(settings.http.expectation.statuses == nil && settings.http.expectation.acceptedStatuses.contains(200))
            #expect(settings.http.expectation.isDeclared)
        }
    }

    @Test func `a probe of a canary follows no redirect`() throws {
        let endpoint = try Endpoint("http://canary.example/204")
        let plan = HTTPPlan(endpoint, try canary { $0.followsRedirects = true })
        #expect(plan.isCanary && !plan.followsRedirects)
        expectEqual(HTTPPlan(endpoint, ProbeSettings()).followsRedirects, true)
    }

    @Test func `a recording marks the canary, and others as before`() throws {
        func line(_ settings: ProbeSettings) throws -> Data {
            let input = MonitorInput.targetAdded(TargetID(3), try Endpoint("http://canary.example/"), settings)
            return try JSONEncoder().encode(
                RecordedInput(moment: Moment(monotonicNanoseconds: 1, wallClockNanoseconds: 2), input: input))
        }
        func isCanary(_ line: Data) throws -> Bool? {
            guard case .targetAdded(_, _, let settings) = try JSONDecoder().decode(RecordedInput.self, from: line).input
            else { return nil }
            return settings.http.isCanary
        }
        try expectEqual(isCanary(line(canary())), true)
        var other = ProbeSettings()
        try other.http.setStatuses("204")
        try expectEqual(isCanary(line(other)), false)
        #expect(try !String(decoding: line(other), as: UTF8.self).contains("\"canary\":"))
    }
}
