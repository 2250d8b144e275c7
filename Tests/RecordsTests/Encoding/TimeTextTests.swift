import Console
import Expectations
import Reachability
import RecordSamples
import Testing

@testable import Records

@Suite struct TimeTextTests {
    /// 12:00 UTC is 22:00 in this zone, so that its midnight is two hours after the samples begin.
    private func times(_ choice: TimeText.Choice) -> TimeText { TimeText(choice) { _ in 36_000 } }

    @Test func `each form of a time`() {
        let moment = Samples.moment(3.12)
        var relative = times(.relative)
        relative.begin(at: Samples.moment(0))
        expectEqual(
            [relative.clock(moment), times(.local).clock(moment), times(.utc).clock(moment)],
            ["+3.120s", "22:00:03.120", "12:00:03.120"])
        expectEqual(
            [relative.full(moment), times(.local).full(moment), times(.utc).full(moment)],
            ["+3.120s", "2026-08-02T22:00:03.120+10:00", "2026-08-02T12:00:03.120Z"])
        let now = Samples.moment(7_384)
        expectEqual(
            TimeText.Choice.allCases.map { times($0).past(moment, now: now) },
            ["2h03m ago", "2026-08-02T22:00:03+10:00", "2026-08-02T12:00:03Z"])
        expectEqual(TimeText(.local) { _ in -12_600 }.full(moment), "2026-08-02T08:30:03.120-03:30")
    }

    @Test func `a terminal shows the date at midnight, and a header explains times and marks`() {
        func lines(_ choice: TimeText.Choice) -> [String] {
            var live = LiveLines(header: Samples.header, style: TextStyle(isUnicode: true), time: times(choice))
            let events = [
                Samples.hello, Samples.server(at: 7_199),
                Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused, at: 7_200),
            ]
            return events.flatMap { live.lines(Record(event: $0)) }
        }
        let local = lines(.local)
        expectEqual(local[0], "netwatch 0.1.0 · this machine · 2026-08-02T22:00:00.000+10:00")
        expectEqual(local[1], "local times · ✓ works, ✗ fails, ? degraded, pending or not known")
        expectEqual(
            Array(local.suffix(3)),
            [
                "23:59:59.000 ✓ 192.0.2.9:22  up  1.25 ms from 192.0.2.9 via eth0 (wired)", "               2026-08-03",
                "00:00:00.000 ✗ 192.0.2.9:22  down  tcp/refused: 192.0.2.9 refuses port 22  (was up for 1.0s)",
            ])
        #expect(!lines(.utc).contains { $0.contains("2026-08-03") } && lines(.utc)[1].hasPrefix("times in UTC"))
        let relative = lines(.relative)
        #expect(relative[0].hasSuffix(" · 2026-08-02T12:00:00.000Z") && relative[1].hasPrefix("times since then · "))
        #expect(relative.last?.hasPrefix(" +2h00m00s ✗ ") == true && !relative.contains { $0.contains("2026-08-03") })
    }

    @Test func `lines in a pipe have complete times`() {
        var plain = PlainLines(header: Samples.header, style: TextStyle(), time: times(.local))
        #expect(plain.line(Record(event: Samples.server(at: 1))).hasPrefix("2026-08-02T22:00:01.000+10:00 target "))
        plain = PlainLines(header: Samples.header, style: TextStyle(), time: times(.relative))
        _ = plain.line(Record(event: Samples.hello))
        #expect(plain.line(Record(event: Samples.server(at: 1))).hasPrefix("+1.000s target "))
    }

    @Test func `probe lines have times only with --time, and the date at the start and at midnight`() throws {
        guard case .probe(_, var report) = Samples.probe(at: 7_199.5) else { return }
        var text = ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle(), columns: 80, time: times(.local))
        expectEqual(
            text.lines(report, number: 1),
            ["2026-08-02", "23:59:59.500 + 192.0.2.9:22  1  1.250 ms  from 192.0.2.9"])
        report.moment = Samples.moment(7_200.5)
        expectEqual(
            text.lines(report, number: 2),
            ["2026-08-03", "00:00:00.500 + 192.0.2.9:22  2  1.250 ms  from 192.0.2.9"])
        text = ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle(), time: times(.relative))
        _ = text.lines(report, number: 1)
        report.moment = Samples.moment(7_201.5)
        expectEqual(text.lines(report, number: 2), ["   +1.000s + 192.0.2.9:22  2  1.250 ms  from 192.0.2.9"])
    }

    @Test func `each probe line in a pipe has its date`() {
        guard case .probe(_, let report) = Samples.probe(at: 7_199.5) else { return }
        var text = ProbeText(targets: ["192.0.2.9:22"], count: 5, style: TextStyle(), time: times(.local))
        expectEqual(
            text.lines(report, number: 1), ["2026-08-02T23:59:59.500+10:00 + 192.0.2.9:22  1  1.250 ms  from 192.0.2.9"])
    }
}
