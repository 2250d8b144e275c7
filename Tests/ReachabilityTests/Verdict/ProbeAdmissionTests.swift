import Pacing
import Testing

@testable import Reachability

private let v4 = ProbeAdmission.Lane(.v4, isSuspect: false)
private let v6 = ProbeAdmission.Lane(.v6, isSuspect: false)
private let silent4 = ProbeAdmission.Lane(.v4, isSuspect: true)

@Suite struct ProbeAdmissionTests {
    private func admitted(_ lane: ProbeAdmission.Lane, into admission: inout ProbeAdmission) -> Int {
        var count = 0
        while admission.allows(lane) {
            admission.start(lane)
            count += 1
        }
        return count
    }

    @Test func `silent servers occupy at most half of the probes, and the others have the remaining ones`() {
        var admission = ProbeAdmission()
        admission.setCeiling(100)
        #expect(admitted(silent4, into: &admission) == 50)
        #expect(admitted(v4, into: &admission) == 25)
        #expect(admitted(v6, into: &admission) == 25)
        #expect(!admission.allows(v4) && admission.total == 100)
        admission.end(silent4)
        #expect(admission.allows(silent4) && admission.allows(v4))
    }

    @Test func `one family has at most three quarters of the probes`() {
        var admission = ProbeAdmission()
        admission.setCeiling(100)
        #expect(admitted(v6, into: &admission) == 75)
        #expect(admitted(v4, into: &admission) == 25)
    }

    @Test func `a refused socket lowers the limit below the running probes, and each ended probe raises it by one`() {
        var admission = ProbeAdmission()
        admission.setCeiling(1_000)
        for _ in 0..<400 { admission.start(v4) }
        for _ in 0..<10 { admission.refused() }
        #expect(admission.limit == 399)
        for _ in 0..<400 { admission.end(v4) }
        #expect(admission.limit == 799)
        admission.refused()
        #expect(admission.limit == ProbeAdmission.minimumLimit)
    }
}

@Suite struct NoticeRampTests {
    private func ids(_ count: Int) -> [TargetID] { (0..<count).map { TargetID($0) } }

    @Test func `a few targets are notified at once`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(3), hasResumed: false, using: &random, at: 7)
        #expect((0..<4).map { _ in ramp.take(at: 7)?.target } == ids(3).map { Optional($0) } + [nil])
        #expect(ramp.isEmpty && ramp.due == nil)
    }

    @Test func `the number of notified targets doubles each 100 ms, and each target is notified once`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(100_000), hasResumed: false, using: &random, at: 0)
        ramp.add(ids(100_000), hasResumed: false, using: &random, at: 1)
        var taken: [TargetID] = []
        var counts: [Int] = []
        for step in 0...11 as ClosedRange<Int64> {
            while let notice = ramp.take(at: step * NoticeRamp.doubling) { taken.append(notice.target) }
            counts.append(taken.count)
        }
        #expect(counts.prefix(5) == [65, 129, 257, 513, 1_025])
        #expect(taken.count == 100_000 && Set(taken).count == 100_000)
        #expect(taken != ids(100_000))
    }

    @Test func `a removed target is not notified`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(2), hasResumed: true, using: &random, at: 0)
        ramp.remove(TargetID(0))
        #expect(ramp.take(at: 0) == NoticeRamp.Notice(target: TargetID(1), hasResumed: true))
        #expect(ramp.take(at: 0) == nil)
    }
}
