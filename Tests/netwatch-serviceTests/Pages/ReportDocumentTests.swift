import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ReportDocumentTests {
    private static func target(_ text: String, _ state: RecordedState) -> ReportDocument.Target {
        var summary = PeriodSummary(0..<2_000)
        summary.times[state] = 2_000
        return .init(text: text, id: nil, title: text, summary: summary, outages: 0, worst: [])
    }

    private static func report(_ targets: ReportDocument.Target...) -> [String] {
        ReportDocument(moment: PageSamples.moment(), period: 0..<2_000, timeZone: "UTC", targets: targets).targets.map(\.text)
    }

    @Test func `a target that was removed before the period is left out`() {
        expectEqual(Self.report(Self.target("a:1", .up), Self.target("removed:1", .notRecorded)), ["a:1"])
        expectEqual(Self.report(Self.target("silent:1", .unknown), Self.target("removed:1", .notRecorded)), ["silent:1"])
    }

    @Test func `a target without recorded time is in the report of itself, and of a period without any`() {
        expectEqual(Self.report(Self.target("removed:1", .notRecorded)), ["removed:1"])
        expectEqual(Self.report(Self.target("a:1", .notRecorded), Self.target("b:1", .notRecorded)), ["a:1", "b:1"])
    }
}
