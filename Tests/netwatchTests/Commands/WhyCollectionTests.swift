import Expectations
import Reachability
import RecordSamples
import Testing

@testable import netwatch

/// The collection of a diagnosis from a monitor's events, as transcripts: times are seconds.
@Suite struct WhyCollectionTests {
    private static let target = TargetID(0)

    private func batch(_ endpoints: String..., timeout: Duration = .seconds(3)) -> WhyBatch {
        let settings = ProbeSettings(timeout: timeout)
        let members = endpoints.enumerated().map { number, text in
            (TargetID?(TargetID(number)), WhyCollection(endpoint: Samples.endpoint(text), settings: settings))
        }
        return WhyBatch(members, start: Samples.moment(0))
    }

    private func report(
        _ target: TargetID = target, _ text: String = "192.0.2.9:22", cause: Cause? = nil, addresses: [String] = [],
        at seconds: Double
    ) -> MonitorEvent {
        let lookup = addresses.isEmpty ? nil : LookupAnswer(id: 1, addresses: addresses.map(Samples.address))
        let report = ProbeReport(
            endpoint: Samples.endpoint(text), roundTrip: cause == nil ? .milliseconds(1) : nil,
            address: Samples.address("192.0.2.9"), lookup: lookup, cause: cause, moment: Samples.moment(seconds))
        return .probe(target, report)
    }

    private func requests(_ batch: inout WhyBatch, at seconds: Double) -> [WhyCollection.Request] {
        #expect(batch.isDone(at: Samples.moment(seconds)))
        return batch.takeRequests(at: Samples.moment(seconds)).map(\.request)
    }

    private func evidence(_ batch: WhyBatch, at seconds: Double) throws -> DiagnosisEvidence {
        try #require(batch.members.first).evidence(path: try #require(batch.path), at: Samples.moment(seconds))
    }

    private let unproven = Cause(.tcp, .timeout, detail: "192.0.2.9 does not answer on port 22")

    @Test func `a silent target is examined once, beside the probe that confirms the silence`() throws {
        var why = batch("192.0.2.9:22")
        why.receive(Samples.hello)
        why.receive(Samples.server(0, "192.0.2.9:22", .unknown, initial: true))
        #expect(!why.isDone(at: Samples.moment(1)))
        why.receive(report(cause: unproven, at: 3))
        expectEqual(requests(&why, at: 3), [.examineSilence])
        #expect(!why.isDone(at: Samples.moment(3)))
        why.receive(report(cause: unproven, at: 6))
        why.receive(Samples.server(0, "192.0.2.9:22", .down, cause: unproven, at: 6))
        #expect(why.isComplete(at: Samples.moment(6)))
        try expectEqual(evidence(why, at: 6).update?.statusName, .down)
        try expectEqual(evidence(why, at: 6).examined, .seconds(6))
    }

    @Test func `a neighbor entry that the kernel checks is awaited`() {
        var why = batch("192.0.2.9:22")
        why.receive(Samples.hello)
        why.receive(report(cause: unproven, at: 3))
        _ = requests(&why, at: 3)
        why.receive(Samples.server(0, "192.0.2.9:22", .unreachable, cause: unproven, at: 6))
        expectEqual(requests(&why, at: 6), [.askNeighbor])
        why.note(.state(.probe), of: 0, at: Samples.moment(6))
        #expect(!why.isDone(at: Samples.moment(6.2)) && why.deadline(at: Samples.moment(6.2)) == Samples.moment(6.25))
        expectEqual(requests(&why, at: 6.25), [.askNeighbor])
        why.note(.state(.failed), of: 0, at: Samples.moment(6.25))
        #expect(why.isComplete(at: Samples.moment(6.25)))
    }

    @Test func `a neighbor entry that is not being checked is final, and the check is awaited for nine seconds`() {
        var why = batch("192.0.2.9:22")
        why.receive(Samples.hello)
        why.receive(Samples.server(0, "192.0.2.9:22", .unreachable, cause: unproven, at: 6))
        expectEqual(requests(&why, at: 6), [.askNeighbor])
        var other = why
        why.note(.state(.reachable, confirmedAgo: 0), of: 0, at: Samples.moment(6))
        #expect(why.isComplete(at: Samples.moment(6)))
        other.note(.state(.delay), of: 0, at: Samples.moment(8.9))
        #expect(!other.isDone(at: Samples.moment(8.9)))
        expectEqual(requests(&other, at: 9.2), [.askNeighbor])
        other.note(.state(.delay), of: 0, at: Samples.moment(9.2))
        #expect(other.isComplete(at: Samples.moment(9.2)))
    }

    @Test func `each address of a name is probed, and its verdict is awaited`() throws {
        var why = batch("db.example:22")
        why.receive(Samples.hello)
        let answer = report(Self.target, "db.example:22", addresses: ["192.0.2.9", "2001:db8::9", "192.0.2.9", "0.0.0.0"], at: 1)
        why.receive(answer)
        why.receive(Samples.server(0, "db.example:22", .up, at: 1))
        let addresses = ["192.0.2.9", "2001:db8::9"].map(Samples.address)
        expectEqual(requests(&why, at: 1), [.probeAddresses(addresses)])
        why.receive(answer)
        why.add(TargetID(7), member: 0, address: 0)
        why.add(TargetID(8), member: 0, address: 1)
        expectEqual(why.targets(of: 0).count, 3)
        why.receive(Samples.server(7, "192.0.2.9:22", .up, at: 1.1))
        #expect(!why.isDone(at: Samples.moment(5)))
        // The result of an address is no probe of the name.
        why.receive(report(TargetID(8), cause: unproven, at: 4))
        #expect(!why.isDone(at: Samples.moment(5)))
        why.receive(Samples.server(8, "[2001:db8::9]:22", .unreachable, cause: unproven, at: 7))
        #expect(why.isComplete(at: Samples.moment(7)))
        try expectEqual(evidence(why, at: 7).addresses.map(\.status), [.up, .unreachable])
    }

    @Test func `a name with one address, and addresses of an excluded family, need no further probes`() {
        var why = batch("db.example:22")
        why.receive(Samples.hello)
        why.receive(report(Self.target, "db.example:22", addresses: ["192.0.2.9"], at: 1))
        why.receive(Samples.server(0, "db.example:22", .up, at: 1))
        #expect(why.isComplete(at: Samples.moment(1)))
        var settings = ProbeSettings()
        settings.families = [.v4]
        let member = WhyCollection(endpoint: Samples.endpoint("db.example:22"), settings: settings)
        var other = WhyBatch([(Self.target, member)], start: Samples.moment(0))
        other.receive(Samples.hello)
        other.receive(report(Self.target, "db.example:22", addresses: ["192.0.2.9", "2001:db8::9"], at: 1))
        expectEmpty(other.takeRequests(at: Samples.moment(1)))
    }

    @Test func `the last probe that had the verdict's cause is reported`() throws {
        var why = batch("192.0.2.9:22")
        why.receive(Samples.hello)
        why.receive(Samples.probe(failed: true, at: 1))
        why.receive(Samples.probe(at: 2))
        why.receive(Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused, at: 2))
        try expectEqual(evidence(why, at: 2).report?.moment, Samples.moment(1))
        var up = batch("192.0.2.9:22")
        up.receive(Samples.hello)
        up.receive(Samples.probe(failed: true, at: 1))
        up.receive(Samples.probe(at: 2))
        up.receive(Samples.server(at: 2))
        try expectEqual(evidence(up, at: 2).report?.moment, Samples.moment(2))
    }

    @Test func `the collection ends without a verdict, and without a path`() {
        var why = batch("192.0.2.9:22")
        #expect(why.path == nil && why.isComplete(at: Samples.moment(30)) && !why.isDone(at: Samples.moment(29)))
        why.receive(Samples.hello)
        expectEqual(why.deadline(at: Samples.moment(1)), Samples.moment(11.1))
        #expect(why.isComplete(at: Samples.moment(12)) && !why.isDone(at: Samples.moment(11)))
        var path = WhyBatch([(nil, WhyCollection(endpoint: nil, settings: ProbeSettings()))], start: Samples.moment(0))
        #expect(!path.isDone(at: Samples.moment(0)))
        path.receive(Samples.hello)
        #expect(path.isComplete(at: Samples.moment(0)))
    }

    @Test func `of a canary only the verdict is awaited, and nothing further is asked`() {
        let settings = ProbeSettings(timeout: .seconds(3))
        let canary = WhyCollection(endpoint: Samples.endpoint("http://canary.example/"), settings: settings, isCanary: true)
        var why = WhyBatch(
            [(nil, WhyCollection(endpoint: nil, settings: settings)), (Self.target, canary)], start: Samples.moment(0))
        why.receive(Samples.hello)
        #expect(!why.isDone(at: Samples.moment(0)))
        why.receive(report(Self.target, "http://canary.example/", addresses: ["192.0.2.9", "192.0.2.8"], at: 1))
        why.receive(report(Self.target, "http://canary.example/", cause: unproven, at: 3))
        why.receive(Samples.server(0, "http://canary.example/", .unknown, initial: true))
        #expect(!why.isDone(at: Samples.moment(3)) && why.takeRequests(at: Samples.moment(3)).isEmpty)
        why.receive(Samples.server(0, "http://canary.example/", .unreachable, cause: unproven, at: 6))
        #expect(why.isComplete(at: Samples.moment(6)) && why.takeRequests(at: Samples.moment(6)).isEmpty)
        expectEqual(why.members.last?.update?.statusName, .unreachable)
    }

    @Test func `several targets are complete when the last one is`() {
        var why = batch("192.0.2.9:22", "192.0.2.8:22")
        why.receive(Samples.hello)
        why.receive(Samples.server(1, "192.0.2.8:22", .up, at: 1))
        #expect(!why.isDone(at: Samples.moment(1)))
        why.receive(Samples.server(9, "192.0.2.9:22", .up, at: 1))
        #expect(!why.isDone(at: Samples.moment(1)))
        why.receive(Samples.server(0, "192.0.2.9:22", .up, at: 2))
        #expect(why.isComplete(at: Samples.moment(2)))
    }
}
