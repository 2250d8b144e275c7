import Expectations
import Foundation
import Testing

@testable import netwatch_transfer

/// The request and the file of a report.
@Suite struct HeartbeatReportTests {
    private static let outcomes: [(HeartbeatReport.Outcome, String)] = [
        (.start, "/start"), (.success, ""), (.fail, "/fail"), (.code(0), "/0"), (.code(137), "/137"),
    ]

    private func report(_ outcome: HeartbeatReport.Outcome, name: String = "a.b") -> HeartbeatReport {
        HeartbeatReport(name: name, outcome: outcome, time: 1_785_672_003_120_999_999, body: "é\n")
    }

    @Test(arguments: outcomes)
    func `a report is a path of the service, and a late one has its time`(outcome: HeartbeatReport.Outcome, path: String) {
        let report = report(outcome)
        expectEqual(report.target(isLate: false), "/api/v1/heartbeat/a.b\(path)")
        expectEqual(report.target(isLate: true), "/api/v1/heartbeat/a.b\(path)?at=2026-08-02T12:00:03.120Z")
    }

    @Test(arguments: outcomes) func `a stored report is read again`(outcome: HeartbeatReport.Outcome, path: String) throws {
        let report = report(outcome)
        try expectEqual(JSONDecoder().decode(HeartbeatReport.self, from: JSONEncoder().encode(report)), report)
    }

    @Test(arguments: [
        #"{"name":"a","outcome":"256","time":1,"body":""}"#, #"{"name":"a","outcome":"-1","time":1,"body":""}"#,
        #"{"name":"a","outcome":"+1","time":1,"body":""}"#, #"{"name":"a","outcome":"007","time":1,"body":""}"#,
        #"{"name":"a","outcome":"stop","time":1,"body":""}"#, #"{"name":"a/b","outcome":"fail","time":1,"body":""}"#,
        #"{"name":"..","outcome":"fail","time":1,"body":""}"#, #"{"name":"a","outcome":"fail","body":""}"#,
        #"{"name":"a","outcome":"fail","time":1e30,"body":""}"#, #"{"name":"a","outcome":"fail","time":1}"#, "[]", "",
    ])
    func `a stored text that is no report is refused`(text: String) {
        expectNil(try? JSONDecoder().decode(HeartbeatReport.self, from: Data(text.utf8)))
    }
}
