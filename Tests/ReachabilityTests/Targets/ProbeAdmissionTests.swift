import Certificates
import Expectations
import Pacing
import Testing

@testable import Reachability

private let v4 = ProbeAdmission.Lane(.v4, .answered)
private let v6 = ProbeAdmission.Lane(.v6, .answered)
private let new4 = ProbeAdmission.Lane(.v4, .untried)
private let silent4 = ProbeAdmission.Lane(.v4, .silent)

@Suite struct ProbeAdmissionTests {
    private func admission(limit: Int) -> ProbeAdmission {
        var admission = ProbeAdmission()
        admission.setLimit(limit)
        return admission
    }

    private func admitted(_ lane: ProbeAdmission.Lane, into admission: inout ProbeAdmission) -> Int {
        var count = 0
        while admission.allows(lane) {
            admission.add(1, to: lane)
            count += 1
        }
        return count
    }

    @Test func `silent servers occupy at most three eighths of the sockets, and the others have the remaining ones`() {
        var admission = admission(limit: 80)
        expectEqual(admitted(silent4, into: &admission), 30)
        expectEqual(admitted(new4, into: &admission), 20)
        expectEqual(admitted(v4, into: &admission), 10)
        expectEqual(admitted(v6, into: &admission), 20)
        #expect(!admission.allows(v4) && admission.total == 80)
        admission.add(-1, to: silent4)
        #expect(admission.allows(silent4) && admission.allows(new4) && admission.allows(v4))
    }

    @Test func `targets without a result occupy at most five eighths of the sockets, together with silent ones`() {
        var admission = admission(limit: 80)
        expectEqual(admitted(new4, into: &admission), 50)
        expectEqual(admitted(silent4, into: &admission), 0)
        expectEqual(admitted(v4, into: &admission), 10)
    }

    @Test func `while targets without a result wait, silent ones occupy at most an eighth of the sockets`() {
        var admission = admission(limit: 80)
        admission.hasUntriedWaiting = true
        expectEqual(admitted(silent4, into: &admission), 10)
        expectEqual(admitted(new4, into: &admission), 40)
        admission.hasUntriedWaiting = false
        #expect(!admission.allows(silent4))
        admission.add(-30, to: new4)
        expectEqual(admitted(silent4, into: &admission), 20)
    }

    @Test func `one family has at most three quarters of the sockets`() {
        var admission = admission(limit: 100)
        expectEqual(admitted(v6, into: &admission), 75)
        expectEqual(admitted(v4, into: &admission), 25)
    }

    @Test func `attempts are repeated while less than half of the sockets are in use`() {
        var admission = admission(limit: 10)
        admission.add(4, to: new4)
        #expect(admission.allowsRepetition)
        admission.add(1, to: new4)
        #expect(!admission.allowsRepetition)
    }

    @Test func `of the 256 places for TLS handshakes, a quarter is always left to servers that answer`() {
        let tls = { ProbeAdmission.Lane(.v4, $0, hasHandshake: true) }
        var admission = admission(limit: 8_000)
        expectEqual(admitted(tls(.silent), into: &admission), 160)
        expectEqual(admitted(tls(.untried), into: &admission), 32)
        expectEqual(admitted(tls(.answered), into: &admission), 64)
        // The handshakes are not short of sockets, and targets without them need no places.
        #expect([.silent, .untried, .answered].allSatisfy { admission.allowsSocket(tls($0)) })
        #expect(admission.allows(silent4) && admission.allows(new4) && admission.allows(v4))
    }

    @Test func `only a target that may need a TLS handshake for its whole probe has a place for it`() throws {
        #expect(try !Transcript("http://192.0.2.1/").machine.lane.hasHandshake)
        var target = try Transcript("https://192.0.2.1/")
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: "192.0.2.1"))
        expectEqual(target.machine.lane, ProbeAdmission.Lane(.v4, .untried, hasHandshake: true))
        // The host drops the SYN.
        expectEqual(target.at(400, .preempted), ["cancel 1"])
        expectEqual(target.machine.lane, ProbeAdmission.Lane(.v4, .silent))
        _ = target.at(900, .tick)
        _ = target.at(900, .route(to: "192.0.2.1"))
        for case .connect(let attempt) in target.effects { #expect(!attempt.hasHandshakePlace) }
        // It accepts the connection, and never answers the handshake.
        _ = target.at(901, .connected(2))
        var result = ProbeResult(id: 2, roundTripNanoseconds: 1_000_000)
        result.levels = LevelResult()
        result.levels?.isAtDeadline = true
        result.levels?.tls = TLSHandshakeFacts(serverName: "192.0.2.1")
        result.levels?.handshakeEnd = .deadline
        _ = target.at(3_900, .probe(result))
        expectEqual(target.machine.lane, ProbeAdmission.Lane(.v4, .silent, hasHandshake: true))
    }

    @Test(arguments: [0, 1]) func `a limit of one socket lets one probe of any lane run`(limit: Int) {
        for lane in [v4, v6, new4, silent4] {
            var admission = admission(limit: limit)
            expectEqual(admitted(lane, into: &admission), 1)
        }
    }

    @Test func `the limit is at most 16,384, and is then not one of open files`() {
        let admission = admission(limit: 1 << 20)
        #expect(admission.limit == 16_384 && !admission.isLimitedByFiles)
    }
}

@Suite struct ProbeShortageTests {
    private let second: Int64 = 1_000_000_000

    @Test func `waiting for five seconds without a pause is reported once, and its end after five seconds`() {
        var shortage = ProbeShortage()
        expectEqual(shortage.update(isWaiting: true, at: 0), false)
        expectEqual(shortage.deadline, 5 * second)
        expectEqual(shortage.update(isWaiting: true, at: 5 * second - 1), false)
        expectEqual(shortage.update(isWaiting: true, at: 5 * second), true)
        expectEqual(shortage.update(isWaiting: true, at: 60 * second), false)
        #expect(shortage.isReported && shortage.deadline == nil)
        expectEqual(shortage.update(isWaiting: false, at: 61 * second), false)
        expectEqual(shortage.update(isWaiting: false, at: 66 * second), true)
        #expect(!shortage.isReported)
    }

    @Test func `a pause of the waiting begins the time again`() {
        var shortage = ProbeShortage()
        expectEqual(shortage.update(isWaiting: true, at: 0), false)
        expectEqual(shortage.update(isWaiting: false, at: 4 * second), false)
        expectEqual(shortage.update(isWaiting: true, at: 4 * second + 1), false)
        expectEqual(shortage.update(isWaiting: true, at: 9 * second), false)
        expectEqual(shortage.update(isWaiting: true, at: 9 * second + 1), true)
    }
}

@Suite struct NoticeRampTests {
    private func ids(_ count: Int) -> [TargetID] { (0..<count).map { TargetID($0) } }

    @Test func `a few targets are notified at once`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(3), hasResumed: false, using: &random, at: 7)
        expectEqual((0..<4).map { _ in ramp.takeNext(at: 7)?.target }, ids(3).map { Optional($0) } + [nil])
        #expect(ramp.isEmpty && ramp.due == nil)
    }

    @Test func `the number of notified targets doubles each 100 ms, and each target is notified once`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(100_000), hasResumed: false, using: &random, at: 0)
        ramp.add(ids(100_000), hasResumed: false, using: &random, at: 1)
        var taken: [TargetID] = []
        var counts: [Int] = []
        for step in 0...11 as ClosedRange<Int64> {
            while let notice = ramp.takeNext(at: step * NoticeRamp.doubling) { taken.append(notice.target) }
            counts.append(taken.count)
        }
        expectEqual(counts.prefix(5), [65, 129, 257, 513, 1_025])
        #expect(taken.count == 100_000 && Set(taken).count == 100_000)
        #expect(taken != ids(100_000))
    }

    @Test func `a removed target is not notified`() {
        var (ramp, random) = (NoticeRamp(), SplitMix64(seed: 1))
        ramp.add(ids(2), hasResumed: true, using: &random, at: 0)
        ramp.remove(TargetID(0))
        expectEqual(ramp.takeNext(at: 0), NoticeRamp.Notice(target: TargetID(1), hasResumed: true))
        expectNil(ramp.takeNext(at: 0))
    }
}
