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

    @Test func `the text says which outages are flapping`() {
        var target = Self.target("a:1", .up)
        target.worst = [Incident.Kind.flapping, .fault].map { kind in
            PageSamples.incident(
                "\(kind)", .server, .init(.target, "a:1"), PageSamples.refused, ["a:1"], kind: kind, from: 0, to: 1_000
            ).incident
        }
        target.outages = 2
        let report = ReportDocument(
            moment: PageSamples.moment(), period: 0..<2_000, source: TestHistory.source, timeZone: "UTC", targets: [target])
        let lines = String(decoding: HistoryFormat.text.bytes(report), as: UTF8.self).split(separator: "\n").suffix(2)
        expectEqual(lines.map { $0.contains("  flapping  ") }, [true, false])
    }

    @Test func `a report has the percentiles of response times as text, JSON and CSV`() {
        var target = Self.target("a:1", .up)
        for value in 1...200 { target.summary.add(Sample(time: 0, state: .up, roundTrip: 10, responseTime: UInt32(value * 100))) }
        func text(_ format: HistoryFormat, _ targets: [ReportDocument.Target]) -> String {
            let report = ReportDocument(
                moment: PageSamples.moment(), period: 0..<2_000, source: TestHistory.source, timeZone: "UTC", targets: targets)
            return String(decoding: format.bytes(report), as: UTF8.self)
        }
        let plain = Self.target("b:1", .up)
        #expect(
            text(.text, [target]).contains("observed 100.000 %, response p50 101 ms p95 186 ms p99 200 ms, 0 outages"),
            "\(text(.text, [target]))")
        #expect(!text(.text, [plain]).contains("response"))
        #expect(text(.json, [plain]).contains(#""response_ms":{"p50":null,"p95":null,"p99":null},"outages":0"#))
        // The distribution has an error of at most 5 %.
        let quantiles = [0.5, 0.95, 0.99].map { target.summary.responseTimes.quantile($0).map(Double.init) ?? 0 }
        for (found, exact) in zip(quantiles, [10_000, 19_000, 19_800] as [Double]) {
            #expect(abs(found - exact) <= 0.05 * exact, "\(found)")
        }
        let csv = text(.csv, [target]).split(separator: "\r\n")
        #expect(csv[0].hasSuffix(",outages,title,response_p50_ms,response_p95_ms,response_p99_ms"))
        expectEqual(csv[1].split(separator: ",", omittingEmptySubsequences: false).count, csv[0].split(separator: ",").count)
    }

    @Test func `a target without recorded time is in the report of itself, and of a period without any`() {
        expectEqual(Self.report(Self.target("removed:1", .notRecorded)), ["removed:1"])
        expectEqual(Self.report(Self.target("a:1", .notRecorded), Self.target("b:1", .notRecorded)), ["a:1", "b:1"])
    }
}
