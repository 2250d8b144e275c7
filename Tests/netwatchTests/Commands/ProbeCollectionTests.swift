import Reachability
import Testing

@testable import netwatch

/// The collection of the results of `probe` and `why`, from a monitor's events.
@Suite struct ProbeCollectionTests {
    private func collection(count: Int, _ targets: String...) -> ProbeCollection {
        ProbeCollection(
            endpoints: targets.map(Samples.endpoint), count: count,
            settings: ProbeSettings(interval: .seconds(1), timeout: .seconds(3)), start: Samples.moment(0))
    }

    @Test func `the collection is done when each target has its number of results, and ignores further ones`() {
        var probes = collection(count: 2, "192.0.2.9:22", "192.0.2.8:22")
        #expect(probes.receive(Samples.hello) == .nothing)
        for (target, number, isLast) in [(0, 1, false), (0, 2, true), (1, 1, false)] {
            let event = Samples.probe(target)
            guard case .probe(_, let report) = event else { return }
            #expect(probes.receive(event) == .probe(report, number: number, isLast: isLast))
        }
        #expect(probes.receive(Samples.probe(0)) == .nothing)
        #expect(!probes.isDone(at: Samples.moment(1)))
        _ = probes.receive(Samples.probe(1, failed: true))
        #expect(probes.isDone(at: Samples.moment(1)))
        #expect(probes.statistics.map(\.sent) == [2, 2] && probes.statistics.map(\.ok) == [2, 1])
    }

    @Test func `results that do not arrive end the collection`() {
        var probes = collection(count: 2, "192.0.2.9:22")
        #expect(probes.deadline == Samples.moment(30))
        _ = probes.receive(Samples.hello)
        #expect(probes.deadline == Samples.moment(6))
        _ = probes.receive(Samples.probe(at: 4))
        #expect(probes.deadline == Samples.moment(10))
        #expect(!probes.isDone(at: Samples.moment(9.9)) && probes.isDone(at: Samples.moment(10)))
    }

    @Test(arguments: [Cause.Code.noAddressForFamily, .unusableAddress])
    func `a target whose family is excluded, or whose address is unspecified, is done without a probe`(code: Cause.Code) {
        var probes = collection(count: 2, "192.0.2.9:22")
        let cause = Cause(.dns, code, detail: "not of the families that are tried")
        #expect(probes.receive(Samples.server(0, "192.0.2.9:22", .unreachable, cause: cause)) == .excluded)
        #expect(probes.isDone(at: Samples.moment(0)))
        #expect(ProbeSummary(moment: Samples.moment(1), targets: probes.statistics).verdict == .doesNotHold)
    }

    @Test func `why takes the verdict, and pauses once after a silent probe`() {
        var why = WhyCollection(endpoint: Samples.endpoint("192.0.2.9:22"), probeTimeout: .seconds(3), start: Samples.moment(0))
        why.receive(Samples.hello)
        why.receive(Samples.server(0, "192.0.2.9:22", .unknown, initial: true))
        #expect(!why.isDone(at: Samples.moment(1)))
        func silence(_ seconds: Double) -> MonitorEvent {
            .probe(
                TargetID(0),
                ProbeReport(
                    endpoint: Samples.endpoint("192.0.2.9:22"), address: Samples.address("192.0.2.9"), cause: WhySamples.silence,
                    moment: Samples.moment(seconds)))
        }
        why.receive(silence(3))
        #expect(why.isPaused && why.isDone(at: Samples.moment(3)))
        #expect(why.evidence?.report?.cause == WhySamples.silence && why.evidence?.update?.state == .unknown)
        why.resume()
        #expect(!why.isDone(at: Samples.moment(3)))
        why.receive(silence(6))
        #expect(!why.isPaused)
        why.receive(Samples.server(0, "192.0.2.9:22", .down, cause: WhySamples.silence, at: 6))
        #expect(why.isDone(at: Samples.moment(6)) && why.evidence?.update?.state == .down)
    }

    @Test func `why reports the last probe that had the verdict's cause`() {
        var why = WhyCollection(endpoint: Samples.endpoint("192.0.2.9:22"), probeTimeout: .seconds(3), start: Samples.moment(0))
        why.receive(Samples.hello)
        why.receive(Samples.probe(failed: true, at: 1))
        why.receive(Samples.probe(at: 2))
        why.receive(Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused, at: 2))
        #expect(why.evidence?.report?.moment == Samples.moment(1))
        var up = WhyCollection(endpoint: Samples.endpoint("192.0.2.9:22"), probeTimeout: .seconds(3), start: Samples.moment(0))
        up.receive(Samples.hello)
        up.receive(Samples.probe(failed: true, at: 1))
        up.receive(Samples.probe(at: 2))
        up.receive(Samples.server(at: 2))
        #expect(up.evidence?.report?.moment == Samples.moment(2))
    }

    @Test func `why waits a moment for the other addresses of a name, which may degrade the target`() {
        let endpoint = Samples.endpoint("db.example:22")
        var why = WhyCollection(endpoint: endpoint, probeTimeout: .seconds(3), start: Samples.moment(0))
        why.receive(Samples.hello)
        let lookup = LookupAnswer(id: 1, addresses: [Samples.address("192.0.2.9"), Samples.address("2001:db8::9")])
        why.receive(
            .probe(
                TargetID(0),
                ProbeReport(
                    endpoint: endpoint, roundTrip: .milliseconds(1), address: Samples.address("192.0.2.9"), lookup: lookup,
                    moment: Samples.moment(1))))
        why.receive(Samples.server(0, "db.example:22", .up, at: 1))
        #expect(!why.isDone(at: Samples.moment(1.4)) && why.deadline(at: Samples.moment(1)) == Samples.moment(1.5))
        #expect(why.isDone(at: Samples.moment(1.5)))
        why.receive(Samples.server(0, "db.example:22", .degraded, cause: Samples.refused, at: 1.1))
        #expect(why.isDone(at: Samples.moment(1.1)) && why.evidence?.update?.state == .degraded)
    }

    @Test func `why gives up without a verdict, and without a path`() {
        var why = WhyCollection(endpoint: Samples.endpoint("192.0.2.9:22"), probeTimeout: .seconds(3), start: Samples.moment(0))
        #expect(why.evidence == nil && why.isDone(at: Samples.moment(30)) && !why.isDone(at: Samples.moment(29)))
        why.receive(Samples.hello)
        #expect(why.isDone(at: Samples.moment(12)) && !why.isDone(at: Samples.moment(11)))
        var path = WhyCollection(endpoint: nil, probeTimeout: .seconds(3), start: Samples.moment(0))
        path.receive(Samples.hello)
        #expect(path.isDone(at: Samples.moment(0)))
    }
}
