import Expectations
import Reachability
import Records
import RecordSamples
import Testing

@testable import netwatch

/// The collection of the results of `probe`, from a monitor's events.
@Suite struct ProbeCollectionTests {
    private func collection(count: Int, _ targets: String...) -> ProbeCollection {
        ProbeCollection(
            endpoints: targets.map(Samples.endpoint), count: count,
            settings: ProbeSettings(interval: .seconds(1), timeout: .seconds(3)), start: Samples.moment(0))
    }

    @Test func `the collection is done when each target has its number of results, and ignores further ones`() {
        var probes = collection(count: 2, "192.0.2.9:22", "192.0.2.8:22")
        expectEqual(probes.receive(Samples.hello), .nothing)
        for (target, number, isLast) in [(0, 1, false), (0, 2, true), (1, 1, false)] {
            let event = Samples.probe(target)
            guard case .probe(_, let report) = event else { return }
            expectEqual(probes.receive(event), .probe(report, number: number, isLast: isLast))
        }
        expectEqual(probes.receive(Samples.probe(0)), .nothing)
        #expect(!probes.isDone(at: Samples.moment(1)))
        _ = probes.receive(Samples.probe(1, failed: true))
        #expect(probes.isDone(at: Samples.moment(1)))
        #expect(probes.statistics.map(\.sent) == [2, 2] && probes.statistics.map(\.ok) == [2, 1])
    }

    @Test func `with a count of 0 no probe is the last one`() {
        var probes = collection(count: 0, "192.0.2.9:22")
        _ = probes.receive(Samples.hello)
        for number in 1...20 {
            guard case .probe(_, let report) = Samples.probe() else { return }
            expectEqual(probes.receive(Samples.probe()), .probe(report, number: number, isLast: false))
        }
        #expect(!probes.isDone(at: Samples.moment(2)) && probes.statistics[0].sent == 20)
    }

    @Test func `results that do not arrive end the collection`() {
        var probes = collection(count: 2, "192.0.2.9:22")
        expectEqual(probes.deadline, Samples.moment(30))
        _ = probes.receive(Samples.hello)
        expectEqual(probes.deadline, Samples.moment(6))
        _ = probes.receive(Samples.probe(at: 4))
        expectEqual(probes.deadline, Samples.moment(10))
        #expect(!probes.isDone(at: Samples.moment(9.9)) && probes.isDone(at: Samples.moment(10)))
    }

    @Test(arguments: [Cause.Code.noAddressForFamily, .unusableAddress])
    func `a target whose family is excluded, or whose address is unspecified, is done without a probe`(code: Cause.Code) {
        var probes = collection(count: 2, "192.0.2.9:22")
        let cause = Cause(.dns, code, detail: "not of the families that are tried")
        expectEqual(probes.receive(Samples.server(0, "192.0.2.9:22", .unreachable, cause: cause)), .excluded)
        #expect(probes.isDone(at: Samples.moment(0)))
        expectEqual(ProbeSummary(moment: Samples.moment(1), targets: probes.statistics).verdict, .doesNotHold)
    }
}
