import Expectations
import Reachability
import Records
import Testing

@testable import netwatch_service

@Suite struct ReportDocumentTests {
    private static func target(_ text: String, _ state: RecordedState) -> ReportDocument.Target {
        var summary = PeriodSummary(0..<2_000)
        summary.times[state] = 2_000
        return .init(names: .init(number: 0, text: text, identity: .init()), summary: summary, outages: 0, worst: [])
    }

    private static func report(_ targets: ReportDocument.Target...) -> [String] {
        ReportDocument(
            moment: PageSamples.moment(), period: 0..<2_000, source: TestHistory.source, timeZone: "UTC", targets: targets
        ).targets.map(\.text)
    }

    @Test func `a target that was removed before the period is left out`() {
        expectEqual(Self.report(Self.target("a:1", .up), Self.target("removed:1", .notRecorded)), ["a:1"])
        expectEqual(Self.report(Self.target("silent:1", .unknown), Self.target("removed:1", .notRecorded)), ["silent:1"])
    }

    @Test(arguments: [(outages: 2, line: nil), (4, "  and 1 shorter one"), (9, "  and 6 shorter ones")])
    func `the text says how many outages it does not list`(outages: Int, line: String?) {
        var target = Self.target("a:1", .up)
        target.outages = outages
        target.worst = (0..<min(outages, 10)).map { number in
            PageSamples.incident("\(number)", .server, .init(.target, "a:1"), PageSamples.refused, ["a:1"], from: 0, to: 1_000)
                .incident
        }
        let report = ReportDocument(
            moment: PageSamples.moment(), period: 0..<2_000, source: TestHistory.source, timeZone: "UTC", targets: [target])
        let lines = String(decoding: HistoryFormat.text.bytes(report), as: UTF8.self).split(separator: "\n").dropFirst(3)
        expectEqual(lines.count, min(outages, 3) + (line == nil ? 0 : 1))
        let last = lines.last.map(String.init)
        expectEqual(last?.hasPrefix(line ?? "  1970") == true, true, "\(last ?? "")")
        if line != nil { expectEqual(last?.hasSuffix("; 'netwatch history --target a:1' lists all"), true) }
    }

    @Test func `a target without recorded time is in the report of itself, and of a period without any`() {
        expectEqual(Self.report(Self.target("removed:1", .notRecorded)), ["removed:1"])
        expectEqual(Self.report(Self.target("a:1", .notRecorded), Self.target("b:1", .notRecorded)), ["a:1", "b:1"])
    }
}
