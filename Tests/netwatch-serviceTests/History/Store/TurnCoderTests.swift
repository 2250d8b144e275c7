import Expectations
import Foundation
import Pacing
import Testing

@testable import netwatch_service

@Suite struct TurnCoderTests {
    private static let start = ClockReading(wall: 1_764_000_000_000, monotonic: 5_000, bootTime: 7_000)

    /// Turns with all events, in the order in which they are decoded.
    static func turns(_ count: Int, targets: Int, seed: UInt64) -> [HistoryTurn] {
        var random = SplitMix64(seed: seed)
        var time = start
        func below(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
        return (0..<count).map { _ in
            let step = Int64(below(1_000))
            let suspended = Int64(below(50) == 0 ? 100_000 : 0)
            time.wall += step + suspended
            time.monotonic += step
            time.bootTime += step + suspended
            func state() -> RecordedState { RecordedState.allCases[below(7)] }
            var events: [HistoryEvent] = []
            for _ in 0..<below(3) {
                switch below(5) {
                case 4: events.append(.outageLimit(target: below(targets), Int64(below(100_000))))
                case 0: events.append(.begin(target: below(targets), state(), at: time.wall - Int64(below(500))))
                case 1: events.append(.change(target: below(targets), state(), at: time.wall))
                case 2: events.append(.end(target: below(targets), at: time.wall + Int64(below(5))))
                default:
                    let start = time.wall - Int64(below(1_000_000))
                    let reason = HistoryGap.Reason.allCases[below(3)]
                    events.append(.gap(HistoryGap(period: start..<start + Int64(below(1_000_000)), reason: reason)))
                }
                let samples = (0..<below(6)).map { _ in
                    (
                        target: below(targets),
                        sample: Sample(
                            time: time.wall - Int64(below(2_000)), state: state(),
                            roundTrip: below(5) == 0
                                ? nil : UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32)),
                            responseTime: below(4) == 0
                                ? nil : UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32)))
                    )
                }
                events += samples.sorted { $0.target < $1.target }.map { .sample(target: $0.target, $0.sample) }
            }
            return HistoryTurn(time, events)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `turns are the same after encoding`(seed: UInt64) {
        var (encoder, decoder) = (TurnCoder(after: Self.start), TurnCoder(after: Self.start))
        for turn in Self.turns(300, targets: 40, seed: seed) {
            let bytes = encoder.encode(turn)
            #expect(bytes.count <= TurnCoder.bytesPerTurn + turn.events.count * TurnCoder.bytesPerEvent)
            expectEqual(decoder.decode(bytes[...]), turn, "seed \(seed)")
        }
    }

    @Test(arguments: [false, true])
    func `a result of an undisturbed target needs less than two bytes, and less than three with its response time`(
        hasResponseTime: Bool
    ) {
        var random = SplitMix64(seed: 3)
        var encoder = TurnCoder(after: Self.start)
        var size = 0
        // 250 of 10,000 targets in each turn, an interval of 10 s, deviations of some milliseconds, round trips of 12 ms ± 0.3 ms.
        for turn in 0..<400 {
            let end = Self.start.wall + Int64(turn + 1) * 250
            let events = (0..<250).map { index -> HistoryEvent in
                let sample = Sample(
                    time: end - 250 + Int64(index) + Int64(random.next() % 8), state: .up,
                    roundTrip: 1_200 + UInt32(random.next() % 60),
                    responseTime: hasResponseTime ? 4_000 + UInt32(random.next() % 400) : nil)
                return .sample(target: (turn % 40) * 250 + index, sample)
            }
            let time = ClockReading(wall: end, monotonic: end, bootTime: end)
            let bytes = encoder.encode(HistoryTurn(time, events))
            // The first results of each target are learned.
            if turn >= 80 { size += bytes.count }
        }
        #expect(Double(size) / (320 * 250) < (hasResponseTime ? 3 : 2), "\(Double(size) / (320 * 250)) bytes")
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `random bytes are no turn, or one within the limits`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            var decoder = TurnCoder(after: Self.start)
            let bytes = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next() & random.next()) }
            guard let turn = decoder.decode(bytes[...]) else { continue }
            #expect(turn.events.count <= bytes.count * 8)
        }
    }

    @Test func `the extreme values of events are limited`() {
        let extremes: [Int64] = [.min, .max, 0]
        var events: [HistoryEvent] = [
            .sample(target: -1, Sample(time: 0, state: .up, roundTrip: 1)),
            .sample(target: .max, Sample(time: 0, state: .up, roundTrip: 1)),
            .begin(target: .min, .up, at: 0), .end(target: .max, at: 0), .outageLimit(target: 1, .max),
            .outageLimit(target: .min, .min),
            .gap(HistoryGap(period: .min ..< .max, reason: .suspend)),
        ]
        for time in extremes {
            events.append(
                .sample(
                    target: TurnCoder.targetLimit - 1, Sample(time: time, state: .down, roundTrip: .max, responseTime: .max)))
            events.append(.change(target: 0, .notRecorded, at: time))
        }
        let time = ClockReading(wall: .max, monotonic: .min, bootTime: .max)
        var (encoder, decoder) = (TurnCoder(after: time), TurnCoder(after: time))
        let turn = HistoryTurn(ClockReading(wall: .min, monotonic: .max, bootTime: .min), events)
        let bytes = encoder.encode(turn)
        #expect(bytes.count <= TurnCoder.bytesPerTurn + events.count * TurnCoder.bytesPerEvent)
        let decoded = decoder.decode(bytes[...])
        expectEqual(decoded?.events.count, events.count - 2)
    }

    @Test func `a log that the version before response times has written is read`() throws {
        let base64 = """
            bmV0d2F0Y2ggdHVybnMgMTRhMzFhMDY3LWEzZjctNDA4OS1iM2M4LTQyM2Q0MGFiNDllNnR4sXwCAAAAAAAAADiREiqiAQAAwTHIAAAAAADBMcgAAAAA\
            AGg0M0oAAAAAGPeXJKonSBQAEBlxXJrQBAJ0YAIMnRgAhROjAAANsmKb2hsAAA4CRsUsyKOMGQAOpTBI5yvyBgBRv//8rzgv+qgACPHNg10jOCgAe//j\
            wAcYPqfSJ+wMAGKkkApcCvlcJ/AAAUITBD8OAAfUejocKgIKAB0XEAk1EDFuJ+wMAKgkFxSAB2pOKB0qAgoAHSGQCdhfffoqCAAAqDwW2gAH58CC8Sfs\
            DAB0WkAJzaYWDioKCgAqCYWSwAfBTVA3J/AAAOfxAAnhmipgJ/AAAVBUKpAAB4/JazMqAAAAcvUACQFfS2YqAAAAqCpoOAAHbnjkmioIAABx+QAIcY6v\
            wyfwAAFQTEjAB0e4ZVQqAAAAcQEACReQxcAqAAAAqAhhcAAH5xwImyoIAABwZQAJFrf7sCfsDACoFCDkAAf5XowMKgIKABwF
            """
        let bytes = [UInt8](try #require(Data(base64Encoded: base64)))
        let header = try #require(TurnLog.Header(bytes))
        #expect(header.format == .roundTrips && header.generation == 2)
        var coder = TurnCoder(after: header.time, header.format)
        var place = TurnLog.headerSize
        var turns: [HistoryTurn] = []
        while case .turn(let turn, let size) = TurnLog.frame(in: bytes[place...], generation: header.generation, at: place) {
            if let turn = coder.decode(turn) { turns.append(turn) }
            place += size
        }
        let samples = turns.flatMap(\.events).compactMap { event -> Sample? in
            if case .sample(_, let sample) = event { sample } else { nil }
        }
        #expect(turns.count == 22 && samples.count >= 5 && samples.allSatisfy { $0.responseTime == nil })
        #expect(samples.filter { $0.roundTrip != nil }.allSatisfy { 1...100 ~= $0.roundTrip ?? 0 })
    }

    @Test func `a frame is read at its place of its log, and nowhere else`() {
        let frame = TurnLog.frame([1, 2, 3], generation: 7, at: 96)
        expectEqual(TurnLog.frame(in: frame[...], generation: 7, at: 96), .turn([1, 2, 3], size: frame.count))
        expectEqual(TurnLog.frame(in: frame[...], generation: 8, at: 96), .end)
        expectEqual(TurnLog.frame(in: frame[...], generation: 7, at: 97), .end)
        expectEqual(TurnLog.frame(in: frame.dropLast(), generation: 7, at: 96), .incomplete(size: frame.count))
        expectEqual(TurnLog.frame(in: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], generation: 7, at: 96), .end)
        for index in frame.indices {
            var damaged = frame
            damaged[index] ^= 0x10
            if case .turn = TurnLog.frame(in: damaged[...], generation: 7, at: 96) { Issue.record("byte \(index)") }
        }
    }

    @Test func `a header is the same after encoding, and a damaged one is refused`() {
        let header = TurnLog.Header(
            generation: .max, database: 77, boot: "0123456789-0123456789-0123456789-012", time: Self.start)
        expectEqual(header.bytes.count, TurnLog.headerSize)
        expectEqual(TurnLog.Header(header.bytes), header)
        var former = header
        former.format = .roundTrips
        #expect(TurnLog.Header(former.bytes) == former && former != header)
        for index in 0..<92 {
            var damaged = header.bytes
            damaged[index] ^= 1
            expectNil(TurnLog.Header(damaged))
        }
        expectNil(TurnLog.Header([]))
    }
}
