import Expectations
import Reachability
import Testing

@testable import netwatch_service

/// The last probes that a page can show, as transcripts: reports and questions → answers.
@Suite struct LastProbesTests {
    private let endpoint = PageSamples.endpoint("https://www.example/")

    private func answer(_ probes: inout LastProbes, _ number: Int) -> ProbeReport? {
        probes.report(of: TargetID(number), endpoint)
    }

    @Test func `few targets have their complete reports`() {
        var probes = LastProbes()
        expectNil(answer(&probes, 0))
        for number in 0..<LastProbes.limit { probes.add(PageSamples.report(at: Int64(number) * 1_000), of: TargetID(number)) }
        probes.add(PageSamples.report(at: 999_000), of: TargetID(7))
        expectEqual(answer(&probes, 7), PageSamples.report(at: 999_000))
        expectEqual(answer(&probes, 8), PageSamples.report(at: 8_000))
    }

    @Test func `a target beyond them has the times at once, and its complete report after the next probe`() throws {
        var probes = LastProbes()
        for number in 0...LastProbes.limit { probes.add(PageSamples.report(), of: TargetID(number)) }
        let first = try #require(answer(&probes, LastProbes.limit))
        expectEqual(first.moment.milliseconds, PageSamples.now - 4_000)
        expectEqual(first.resolution, .microseconds(2_300))
        expectEqual(first.connection, .microseconds(12_100))
        expectEqual(first.levels?.handshake, .microseconds(14_200))
        expectEqual(first.levels?.exchange, .microseconds(22_500))
        #expect(first.levels?.tls == nil && first.succeeded)
        probes.add(PageSamples.report(), of: TargetID(LastProbes.limit))
        expectEqual(answer(&probes, LastProbes.limit), PageSamples.report())
    }

    @Test func `the targets that were asked for last keep their complete reports`() {
        var probes = LastProbes()
        for number in 0..<1_000 { probes.add(PageSamples.report(), of: TargetID(number)) }
        for number in 0..<1_000 { _ = answer(&probes, number) }
        for number in 0..<1_000 { probes.add(PageSamples.report(), of: TargetID(number)) }
        let complete = (0..<1_000).filter { probes.isComplete(TargetID($0)) }
        expectEqual(complete, Array(1_000 - LastProbes.limit..<1_000))
    }

    @Test func `a failed probe is known with its cause, or not at all`() {
        var failed = ProbeReport(endpoint: endpoint, cause: PageSamples.refused, moment: PageSamples.moment())
        failed.connection = .milliseconds(3)
        var probes = LastProbes()
        for number in 0...LastProbes.limit { probes.add(PageSamples.report(), of: TargetID(number)) }
        for number in [0, LastProbes.limit] { probes.add(failed, of: TargetID(number)) }
        expectEqual(answer(&probes, 0)?.cause, PageSamples.refused)
        expectNil(answer(&probes, LastProbes.limit))
        // The question reserves a place for the next report.
        probes.add(failed, of: TargetID(LastProbes.limit))
        expectEqual(answer(&probes, LastProbes.limit)?.cause, PageSamples.refused)
    }

    @Test func `a target that is no longer monitored is forgotten, and its place is free`() {
        var probes = LastProbes()
        for number in 0..<LastProbes.limit { probes.add(PageSamples.report(), of: TargetID(number)) }
        probes.remove(TargetID(3))
        expectNil(answer(&probes, 3))
        probes.add(PageSamples.report(), of: TargetID(900))
        #expect(probes.isComplete(TargetID(900)))
    }

    @Test func `a target costs 24 bytes and its number`() {
        expectEqual(MemoryLayout<ProbeTimes>.stride, 24)
    }

    @Test func `times that are out of range are limited`() throws {
        var report = PageSamples.report()
        report.moment = Moment(monotonicNanoseconds: .min, wallClockNanoseconds: .min)
        report.connection = .seconds(Int64.max / 4)
        let times = try #require(ProbeTimes(report))
        #expect(times.report(of: endpoint).connection ?? .zero > .seconds(4_000))
        expectEqual(times.report(of: endpoint).moment.milliseconds, 0)
    }
}
