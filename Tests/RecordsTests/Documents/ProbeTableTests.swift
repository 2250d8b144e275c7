import Console
import Expectations
import Reachability
import RecordSamples
import Testing

@testable import Records

@Suite struct ProbeTableTests {
    /// The results of probes with these round trips in milliseconds; `nil` for a lost probe.
    private func statistics(_ text: String, _ times: Int?...) -> ProbeStatistics {
        var statistics = ProbeStatistics(Samples.endpoint(text))
        for time in times {
            statistics.add(
                ProbeReport(
                    endpoint: statistics.endpoint, roundTrip: time.map { .milliseconds($0) },
                    cause: time == nil ? Samples.refused : nil,
                    moment: Samples.moment(1)))
        }
        return statistics
    }

    private func lines(_ targets: [ProbeStatistics], columns: Int = 80, rows: Int = 24, isUnicode: Bool = true) -> [String] {
        ProbeTable(style: TextStyle(isUnicode: isUnicode), columns: columns, rows: rows)
            .lines(targets, interval: .seconds(1), elapsed: .seconds(4))
    }

    @Test func `each target has a row with its newest results, and a target that fails now its cause`() {
        expectEqual(
            lines([statistics("db:5432", 1, 2, 8, nil, 4), statistics("192.0.2.9:22", nil, nil), statistics("new:1")]),
            [
                "3 targets, every 1s, 5 sent in 4.0s, times in ms; Ctrl-C prints the summary",
                "target          loss    last     min  median     p95  jitter",
                "db:5432         20 %   4.000   1.000   2.000   8.000   3.666  ▂▃█x▅",
                "192.0.2.9:22   100 %       -       -       -       -       -  xx",
                "new:1              -       -       -       -       -       -  ",
                "✗ 192.0.2.9:22  tcp/refused: 192.0.2.9 refuses port 22",
            ])
    }

    @Test(arguments: [40, 60, 80, 120], [3, 8, 24])
    func `the table fits the terminal`(columns: Int, rows: Int) {
        let targets = (1...9).map { statistics("a-rather-long-name-\($0).example:443", 1, nil, 2, nil) }
        for isUnicode in [true, false] {
            let lines = lines(targets, columns: columns, rows: rows, isUnicode: isUnicode)
            #expect(lines.count < max(rows, 4))
            #expect(lines.allSatisfy { DisplayWidth.columns($0) < columns }, "\(lines)")
            #expect(isUnicode || lines.joined().utf8.allSatisfy { $0 < 0x7f })
        }
        #expect(lines(targets, columns: 120, rows: 8).contains("and 5 more"))
        expectEqual(
            lines(targets, columns: 50, rows: 9).suffix(3),
            ["a-rather-long-name-2.example:443", "      50 %       -   1.000   1.000   2.000", "and 7 more"])
    }

    @Test func `a narrow terminal loses columns before names`() {
        let targets = [statistics("198.51.100.10:443", 1), statistics("198.51.100.11:443", 2)]
        expectEqual(
            lines(targets, columns: 60),
            [
                "2 targets, every 1s, 1 sent in 4.0s, times in ms; Ctrl-C",
                "  prints the summary",
                "target               loss    last     min  median     p95",
                "198.51.100.10:443     0 %   1.000   1.000   1.000   1.000",
                "198.51.100.11:443     0 %   2.000   2.000   2.000   2.000",
            ])
        expectEqual(
            lines(targets, columns: 42).suffix(3),
            [
                "target               loss    last  median",
                "198.51.100.10:443     0 %   1.000   1.000",
                "198.51.100.11:443     0 %   2.000   2.000",
            ])
        expectEqual(
            lines(targets, columns: 40).suffix(5),
            [
                "      loss    last     min  median",
                "198.51.100.10:443",
                "       0 %   1.000   1.000   1.000",
                "198.51.100.11:443",
                "       0 %   2.000   2.000   2.000",
            ])
    }

    @Test(arguments: [12, 20, 40, 60, 80, 120]) func `no name is cut, so that rows can be told apart`(columns: Int) {
        let names = [
            "192.0.2.9:22", "https://a-very-long-name.of-a-server.example/with/a/path/1",
            "https://a-very-long-name.of-a-server.example/with/a/path/2",
        ]
        let lines = lines(names.map { statistics($0, 1) }, columns: columns, rows: 60)
        for name in names { #expect(lines.joined().contains(name), "\(lines)") }
        #expect(lines.allSatisfy { DisplayWidth.columns($0) < columns }, "\(lines)")
    }

    @Test func `percentiles are those of the newest thousand probes, and the limits those of all`() {
        var statistics = ProbeStatistics(Samples.endpoint("a:1"))
        for time in [9_000] + Array(repeating: 1, count: 3_000) + Array(1...100) {
            statistics.add(ProbeReport(endpoint: statistics.endpoint, roundTrip: .milliseconds(time), moment: Samples.moment(1)))
        }
        expectEqual(statistics.recent.count, ProbeStatistics.recentLimit)
        #expect(statistics.longest == .milliseconds(9_000) && statistics.shortest == .milliseconds(1))
        #expect(statistics.recentPercentile(50) == .milliseconds(1) && statistics.recentPercentile(95) == .milliseconds(50))
        expectNil(ProbeStatistics(Samples.endpoint("a:1")).recentPercentile(50))
    }

    @Test(arguments: [
        (Duration.zero, "0.000"), (.microseconds(231), "0.231"), (.microseconds(12_356), "12.35"),
        (.microseconds(123_456), "123.4"),
        (.milliseconds(3_061), "3061"), (.seconds(-1), "0.000"),
    ])
    func `times have at most six columns`(duration: Duration, text: String) {
        expectEqual(ProbeTable.milliseconds(duration), text)
    }
}
