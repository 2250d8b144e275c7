import Expectations
import Testing

@testable import Reachability

/// Connections that are established and make no progress: slow paths, lossy ones, and those that carry no data or no large packets.
@Suite struct StalledConnectionTests {
    private static let address = "192.0.2.1"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    // MARK: The facts

    private func fault(
        _ progress: ConnectionProgress, handshake: Int = 0, timeout: Int64 = 3_000, loss: Int = 0
    ) -> StalledConnection.Fault {
        StalledConnection(
            progress: progress, handshakeRetransmissions: handshake, timeout: timeout * 1_000_000, knownLoss: loss
        ).fault
    }

    private func progress(
        unacknowledged: Int = 0, again: Int = 0, bytes: Int? = 404, roundTrip: Int = 20, sinceSent: Int = 2_900
    ) -> ConnectionProgress {
        ConnectionProgress(
            unacknowledged: unacknowledged, retransmissions: again, bytesAcknowledged: bytes,
            roundTripMicroseconds: roundTrip * 1_000,
            sinceSentMilliseconds: sinceSent)
    }

    @Test func `an answer that is not due yet is a slow path`() {
        // Measured over a path of 2 s: the hello is on its way.
        expectEqual(fault(progress(unacknowledged: 1, bytes: 1, roundTrip: 2_013, sinceSent: 990)), .latency)
        // The SYN was sent again before its answer could arrive.
        expectEqual(
            fault(progress(unacknowledged: 1, again: 1, bytes: 1, roundTrip: 1_100, sinceSent: 800), handshake: 1), .latency)
        // Such a round trip may contain the wait for a lost SYN.
        expectEqual(
            fault(progress(unacknowledged: 1, again: 1, bytes: 1, roundTrip: 1_100, sinceSent: 800), handshake: 1, loss: 20),
            .loss)
        // It is due, and of a fast path it always is.
        expectEqual(fault(progress(roundTrip: 1_100, sinceSent: 1_700)), .unknown)
        expectEqual(fault(progress(roundTrip: 1, sinceSent: 0)), .unknown)
        expectEqual(fault(progress(roundTrip: 400, sinceSent: 500), timeout: 9_000), .unknown)
    }

    @Test func `data that nobody acknowledges have vanished on the way`() {
        expectEqual(fault(progress(unacknowledged: 1, again: 3, bytes: 1)), .noData)
        // There is no time to send them a fourth time.
        expectEqual(fault(progress(unacknowledged: 1, again: 2, bytes: 1, roundTrip: 200)), .noData)
        expectEqual(fault(progress(unacknowledged: 1, again: 2, bytes: 1), timeout: 1_000), .noData)
        // This machine's packet filter refuses them.
        expectEqual(fault(progress(bytes: 1)), .noData)
        expectEqual(fault(progress(bytes: 1, sinceSent: 900)), .unknown)
        // Loss explains these as well.
        expectEqual(fault(progress(unacknowledged: 1, again: 1, bytes: 1)), .loss)
        expectEqual(fault(progress(unacknowledged: 1, again: 2, bytes: 1)), .loss)
        expectEqual(fault(progress(unacknowledged: 1, again: 3, bytes: 1), handshake: 1), .loss)
        expectEqual(fault(progress(unacknowledged: 1, again: 3, bytes: 1), loss: 10), .loss)
        expectEqual(fault(progress(unacknowledged: 1, again: 3, bytes: 404)), .loss)
        expectEqual(fault(progress(unacknowledged: 1, again: 3, bytes: nil)), .loss)
    }

    @Test func `a server that has all data and is silent is at fault, unless packets were lost before`() {
        expectEqual(fault(progress()), .unknown)
        expectEqual(fault(progress(), loss: 9), .unknown)
        expectEqual(fault(progress(), loss: 10), .loss)
        expectEqual(fault(progress(again: 1)), .loss)
    }

    @Test func `hostile numbers do no harm`() {
        for value in [Int.min, -1, Int.max] {
            let progress = ConnectionProgress(
                unacknowledged: value, retransmissions: value, bytesAcknowledged: value, roundTripMicroseconds: value,
                sinceSentMilliseconds: value, outOfOrder: value)
            for handshake in [Int.min, 0, Int.max] {
                let stalled = StalledConnection(
                    progress: progress, handshakeRetransmissions: handshake, timeout: .max, knownLoss: 100)
                _ = stalled.cause(IPAddress(v4: 1), port: 1)
            }
        }
    }

    // MARK: The verdict

    private func target(_ settings: ProbeSettings = Transcript.unscheduled(interval: .seconds(20))) throws -> Transcript {
        var target = try Transcript("http://\(Self.address)/", settings)
        _ = target.at(0, .begin)
        _ = target.at(0, .route(to: Self.address))
        return target
    }

    /// Connects the attempt that has just begun. - Returns: the attempt.
    private func connect(_ target: inout Transcript, at time: Int64) throws -> ProbeAttempt {
        var found: ProbeAttempt?
        for case .connect(let attempt) in target.effects { found = attempt }
        let attempt = try #require(found)
        expectEqual(target.at(time, .connected(attempt.id)), [])
        return attempt
    }

    /// Lets the deadline of a connection pass.
    private func stall(
        _ attempt: ProbeAttempt, _ progress: ConnectionProgress, retransmissions: Int = 0, in target: inout Transcript
    ) throws -> [String] {
        let run = try #require(attempt.plan?.stream?.makeRun(deadline: attempt.deadline))
        run.connected(0)
        run.noteSent(404)
        run.deadlineReached(progress)
        var result = ProbeResult(id: attempt.id, retransmissions: retransmissions)
        result.levels = run.result
        return target.at(attempt.deadline / 1_000_000, .probe(result))
    }

    private func answer(
        _ attempt: ProbeAttempt, small: Bool = false, roundTrip: Int64 = 5, processing: Int64 = 0, in target: inout Transcript,
        at time: Int64
    ) throws -> [String] {
        let run = try #require(attempt.plan?.stream?.makeRun(deadline: attempt.deadline))
        run.connected(0)
        Array(Self.ok.utf8).withUnsafeBytes { run.receive($0, now: 0) }
        run.inputEnded(0)
        var result = ProbeResult(id: attempt.id, roundTripNanoseconds: roundTrip * 1_000_000)
        result.levels = run.result
        result.levels?.hasSmallSegments = small
        result.levels?.processingNanoseconds = max(roundTrip, processing) * 1_000_000
        return target.at(time, .probe(result))
    }

    /// Starts the next probe at a time.
    private func probe(_ target: inout Transcript, at time: Int64) {
        _ = target.at(time, .tick)
        _ = target.at(time, .route(to: Self.address))
    }

    @Test func `a probe over a slow path has three times the time, and degrades the target until one needs less`() throws {
        var target = try target()
        let slow = progress(unacknowledged: 1, bytes: 1, roundTrip: 1_200, sinceSent: 600)
        let first = try connect(&target, at: 1_200)
        expectEqual(first.deadline, 3_000_000_000)
        try expectEqual(stall(first, slow, in: &target), ["report quality/latency"])
        probe(&target, at: 3_100)
        let second = try connect(&target, at: 4_300)
        expectEqual(second.deadline, 12_100_000_000)
        _ = try answer(second, roundTrip: 1_200, in: &target, at: 7_000)
        expectEqual(target.line, "degraded quality/latency")
        expectEqual(target.cause?.detail, "a round trip takes 1.2 s, so a probe needs 3.9 s, more than 3 s")
        probe(&target, at: 20_000)
        let third = try connect(&target, at: 20_100)
        expectEqual(third.deadline, 29_000_000_000)
        _ = try answer(third, roundTrip: 1_200, in: &target, at: 20_200)
        expectEqual(target.line, "up")
        probe(&target, at: 40_000)
        try expectEqual(connect(&target, at: 40_001).deadline, 43_000_000_000)
    }

    @Test func `a probe that needs more time because packets were lost is no slow path`() throws {
        var target = try target()
        // The measured time contains the wait for a lost SYN.
        let lost = progress(unacknowledged: 1, again: 1, bytes: 1, roundTrip: 1_020, sinceSent: 900)
        _ = try stall(connect(&target, at: 2_100), lost, retransmissions: 1, in: &target)
        probe(&target, at: 3_100)
        // Its SYN was sent twice too, so that its round trip is not known, but the answer came at once.
        _ = try answer(connect(&target, at: 4_101), roundTrip: 0, processing: 20, in: &target, at: 8_000)
        expectEqual(target.line, "up")
        probe(&target, at: 20_000)
        try expectEqual(connect(&target, at: 20_001).deadline, 23_000_000_000)
    }

    @Test func `a target whose probes need even more time is unreachable, and its server is not accused`() throws {
        var target = try target()
        let slow = progress(unacknowledged: 1, bytes: 1, roundTrip: 2_800, sinceSent: 100)
        _ = try stall(connect(&target, at: 2_900), slow, in: &target)
        probe(&target, at: 3_100)
        let second = try connect(&target, at: 5_900)
        _ = try stall(second, progress(roundTrip: 2_800, sinceSent: 100), in: &target)
        expectEqual(target.line, "unreachable quality/latency")
        expectEqual(target.cause?.detail, "a round trip takes 2.8 s, so a probe needs more than 9 s")
    }

    @Test func `with one failure for a verdict, that of a slow path or of large packets waits for the probe that proves it`()
        throws
    {
        var target = try target(ProbeSettings(interval: .seconds(3600), failAfter: 1))
        let slow = progress(unacknowledged: 1, bytes: 1, roundTrip: 1_200, sinceSent: 600)
        _ = try stall(connect(&target, at: 1_200), slow, in: &target)
        expectEqual(target.line, "unknown")
        expectEqual(target.tickDue, 3_100)
        probe(&target, at: 3_100)
        _ = try answer(connect(&target, at: 4_300), roundTrip: 1_200, in: &target, at: 7_000)
        expectEqual(target.line, "degraded quality/latency")
    }

    @Test func `with one failure for a verdict, one message of a router is confirmed`() throws {
        var target = try target(ProbeSettings(interval: .seconds(3600), failAfter: 1))
        let report = ProbeResult.Reporter(origin: 2, type: 3, code: 13, offender: IPAddress("10.0.0.1"))
        func refuse(_ target: inout Transcript, at time: Int64) {
            for case .connect(let attempt) in target.effects {
                _ = target.at(time, .probe(ProbeResult(id: attempt.id, errno: 113, call: "handshake", reporter: report)))
                return
            }
        }
        refuse(&target, at: 1)
        expectEqual(target.line, "unknown")
        probe(&target, at: 1)
        refuse(&target, at: 2)
        expectEqual(target.line, "unreachable network/admin-prohibited")
    }

    @Test func `data that vanish and packets that are lost make the target unreachable, not down`() throws {
        for (facts, line) in [
            (progress(unacknowledged: 1, again: 3, bytes: 1), "unreachable network/data-dropped"),
            (progress(again: 2), "unreachable quality/loss"),
        ] {
            var target = try target()
            _ = try stall(connect(&target, at: 1), facts, in: &target)
            probe(&target, at: 3_100)
            _ = try stall(connect(&target, at: 3_101), facts, in: &target)
            expectEqual(target.line, line)
        }
    }

    @Test func `large packets are accused only if they vanish again after small ones have arrived`() throws {
        let gap = ConnectionProgress(
            bytesAcknowledged: 404, roundTripMicroseconds: 1_000, sinceSentMilliseconds: 2_900, outOfOrder: 2)
        for isRepeated in [true, false] {
            var target = try target()
            let first = try connect(&target, at: 1)
            expectEqual(first.hasSmallSegments, false)
            _ = try stall(first, gap, in: &target)
            probe(&target, at: 3_100)
            let second = try connect(&target, at: 3_101)
            expectEqual(second.hasSmallSegments, true)
            // This success is no result.
            try expectEqual(answer(second, small: true, in: &target, at: 3_102), [])
            expectEqual(target.line, "unknown")
            probe(&target, at: 3_102)
            let third = try connect(&target, at: 3_103)
            expectEqual(third.hasSmallSegments, false)
            if isRepeated { _ = try stall(third, gap, in: &target) } else { _ = try answer(third, in: &target, at: 3_104) }
            expectEqual(target.line, isRepeated ? "unreachable network/packet-too-big" : "up")
        }
    }
}

extension Transcript {
    /// The status, and the layer and code of its cause.
    fileprivate var line: String {
        "\(state?.rawValue ?? "")" + (published?.cause.map { " \($0.name)" } ?? "")
    }
}
