import Expectations
import Foundation
import Reachability
import RecordSamples
import Testing

@testable import Console
@testable import Records

/// The lines and the summary of `probe`.
@Suite struct ProbeTextTests {
    private static func report(_ milliseconds: Int?, cause: Cause = Samples.refused) -> ProbeReport {
        ProbeReport(
            endpoint: Samples.endpoint("192.0.2.9:22"), roundTrip: milliseconds.map { .milliseconds($0) },
            address: Samples.address("192.0.2.9"), cause: milliseconds == nil ? cause : nil, moment: Samples.moment(1))
    }

    private static func statistics(_ roundTrips: Int?...) -> ProbeStatistics {
        var statistics = ProbeStatistics(Samples.endpoint("192.0.2.9:22"))
        for time in roundTrips { statistics.add(report(time)) }
        return statistics
    }

    @Test func `loss, median and jitter follow from the round trips in their order`() {
        let odd = Self.statistics(10, 30, nil, 20)
        expectEqual(odd.sent, 4)
        expectEqual(odd.ok, 3)
        expectEqual(odd.lossThousandths, 250)
        #expect(odd.shortest == .milliseconds(10) && odd.median == .milliseconds(20) && odd.longest == .milliseconds(30))
        expectEqual(odd.jitter, .milliseconds(15))
        expectEqual(odd.cause, Samples.refused)
        let even = Self.statistics(10, 40, 20, 30)
        #expect(even.median == .milliseconds(25) && even.lossThousandths == 0 && even.cause == nil)
        expectNil(Self.statistics(10).jitter)
        let none = Self.statistics()
        #expect(none.lossThousandths == nil && none.median == nil)
    }

    @Test func `one lost probe of many is not rounded to no loss`() {
        var statistics = ProbeStatistics(Samples.endpoint("a:1"))
        for number in 0..<5000 { statistics.add(Self.report(number == 7 ? nil : 1)) }
        expectEqual(statistics.lossThousandths, 1)
        var lossy = ProbeStatistics(Samples.endpoint("a:1"))
        for number in 0..<5000 { lossy.add(Self.report(number == 7 ? 1 : nil)) }
        expectEqual(lossy.lossThousandths, 999)
    }

    @Test func `a packet that was sent again counts as lost, and has no round trip`() {
        var statistics = Self.statistics(10)
        var report = Self.report(10)
        report.lostPackets = 2
        report.roundTrip = nil
        statistics.add(report)
        expectEqual(statistics.sent, 2)
        expectEqual(statistics.ok, 2)
        expectEqual(statistics.lossThousandths, 500)
        #expect(statistics.median == .milliseconds(10) && statistics.jitter == nil)
        statistics.add(Self.report(nil))
        expectEqual(statistics.sent, 3)
        expectEqual(statistics.ok, 2)
        expectEqual(statistics.lossThousandths, 600)
        var text = ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle())
        expectEqual(text.lines(report, number: 2), ["+ 192.0.2.9:22  2         -  from 192.0.2.9, 2 packets lost"])
    }

    @Test func `the exit code follows from the targets that answered`() {
        func verdict(_ targets: ProbeStatistics...) -> StatusDocument.Verdict {
            ProbeSummary(moment: Samples.moment(1), targets: targets).verdict
        }
        expectEqual(verdict(Self.statistics(1, nil)), .holds)
        expectEqual(verdict(Self.statistics(1), Self.statistics(nil)), .doesNotHold)
        expectEqual(verdict(Self.statistics(1), Self.statistics()), .undetermined)
        expectEqual(verdict(Self.statistics(nil), Self.statistics()), .doesNotHold)
    }

    @Test func `the probe document has its documented keys in their order`() {
        let document = ProbeSummary(moment: Samples.moment(1), targets: [Self.statistics(10, nil, 12)])
        expectEqual(
            String(decoding: document.encode(), as: UTF8.self),
            #"{"v":1,"ts":"2026-08-02T12:00:01.000Z","targets":[{"target":"192.0.2.9:22","sent":3,"ok":2,"loss":0.333,"#
                + #""rtt_ms":{"min":10,"median":11,"max":12,"jitter":2},"response_ms":{"p50":null,"p95":null,"p99":null},"cause":{"layer":"tcp","code":"refused","#
                + #""detail":"192.0.2.9 refuses port 22","evidence":{"errno":"ECONNREFUSED"}},"id":null,"name":null,"group":null,"labels":null}]}"#
        )
    }

    @Test func `lines and table are aligned`() {
        var text = ProbeText(targets: ["192.0.2.9:22", "db.example:5432"], count: 10, style: TextStyle())
        expectEqual(text.lines(Self.report(7), number: 3), ["+ 192.0.2.9:22      3  7.000 ms  from 192.0.2.9"])
        expectEqual(
            text.lines(Self.report(nil), number: 10), ["x 192.0.2.9:22     10            tcp/refused: 192.0.2.9 refuses port 22"])
        var other = ProbeStatistics(Samples.endpoint("db.example:5432"))
        other.add(Self.report(nil))
        expectEqual(
            text.summary([Self.statistics(10, 12, nil), other]),
            [
                "",
                "target           sent  ok    loss       min    median       max    jitter",
                "192.0.2.9:22        3   2  33.3 %  10.00 ms  11.00 ms  12.00 ms  2.000 ms  tcp/refused: 192.0.2.9 refuses port 22",
                "db.example:5432     1   0   100 %         -         -         -         -  tcp/refused: 192.0.2.9 refuses port 22",
            ])
    }

    @Test func `a target with TLS or HTTP has its response time in the line, the table and the document`() {
        let endpoint = Samples.endpoint("https://a.example/")
        var levels = LevelResult()
        (levels.handshakeNanoseconds, levels.processingNanoseconds, levels.transferNanoseconds) = (
            20_000_000, 30_000_000, 1_000_000
        )
        var statistics = ProbeStatistics(endpoint)
        var report = ProbeReport(
            endpoint: endpoint, roundTrip: .milliseconds(7), address: Samples.address("192.0.2.9"), resolution: .milliseconds(3),
            connection: .milliseconds(9), moment: Samples.moment(1))
        report.levels = levels
        for connect in 1...100 {
            report.connection = .milliseconds(connect)
            statistics.add(report)
        }
        var text = ProbeText(targets: ["https://a.example/"], count: 5, style: TextStyle())
        expectEqual(
            text.lines(report, number: 1),
            ["+ https://a.example/  1  7.000 ms  from 192.0.2.9, response in 151.0 ms, resolved in 3.000 ms"])
        expectEqual(
            text.summary([statistics]),
            [
                "", "target              sent   ok  loss       min    median       max    jitter  response",
                "https://a.example/   100  100   0 %  7.000 ms  7.000 ms  7.000 ms  0.000 ms  101.0 ms",
            ])
        let document = String(decoding: ProbeSummary(moment: Samples.moment(1), targets: [statistics]).encode(), as: UTF8.self)
        #expect(document.contains(#""response_ms":{"p50":101,"p95":146,"p99":150}"#), "\(document)")
        expectEqual(report.sentence, "7 ms from 192.0.2.9, response in 151 ms")
        let table = ProbeTable(style: TextStyle(), columns: 100, rows: 24)
            .lines([statistics], interval: .seconds(1), elapsed: .seconds(4))
        #expect(table[1].hasSuffix("jitter  response") && table[2].contains(" 101.0"), "\(table)")
    }

    @Test func `lines fit the width of the terminal`() {
        var text = ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle(isColored: true, isUnicode: true), columns: 40)
        let lines = text.lines(Self.report(nil), number: 1) + text.summary([Self.statistics(1, nil)])
        #expect(lines.allSatisfy { DisplayWidth.paintedColumns($0) < 40 })
        expectEqual(
            LiveLinesTests.words(lines).suffix(5), ["tcp/refused:", "192.0.2.9", "refuses", "port", "22"])
    }

    @Test func `the numbers of a row stay in one line on a narrow terminal`() {
        func summary(_ columns: Int) -> [String] {
            ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle(), columns: columns).summary([
                Self.statistics(10, nil)
            ])
        }
        expectEqual(
            summary(80),
            [
                "", "target        sent  ok  loss       min    median       max  jitter",
                "192.0.2.9:22     2   1  50 %  10.00 ms  10.00 ms  10.00 ms       -",
                "  tcp/refused: 192.0.2.9 refuses port 22",
            ])
        expectEqual(
            summary(60),
            [
                "", "  sent  ok  loss       min    median       max  jitter", "192.0.2.9:22",
                "     2   1  50 %  10.00 ms  10.00 ms  10.00 ms       -", "  tcp/refused: 192.0.2.9 refuses port 22",
            ])
        expectEqual(
            summary(40),
            [
                "", "  sent  ok  loss       min    median", "192.0.2.9:22", "     2   1  50 %  10.00 ms  10.00 ms",
                "  tcp/refused: 192.0.2.9 refuses port", "    22",
            ])
    }

    @Test(arguments: [
        (Duration.zero, "0.000 ms"), (.nanoseconds(412_900), "0.412 ms"), (.microseconds(9_999), "9.999 ms"),
        (.microseconds(10_000), "10.00 ms"), (.microseconds(123_456), "123.4 ms"), (.milliseconds(3_061), "3.06 s"),
        (.seconds(-1), "0.000 ms"), (.seconds(999), "999.00 s"),
    ])
    func `durations have about three significant digits`(duration: Duration, text: String) {
        expectEqual(ReadableDuration.text(duration), text)
        #expect(text.count <= ReadableDuration.width)
    }
}
