import Expectations
import Foundation
import Pacing
import Testing

@testable import netwatch_service

@Suite struct SampleBlockTests {
    @Test(arguments: [
        // The response time of a local service, of an ordinary one, and of one whose values spread over an order of magnitude.
        (base: 90, spread: 20), (base: 4_500, spread: 1_500), (base: 20_000, spread: 200_000),
    ])
    func `a response time needs at most two bytes`(base: UInt32, spread: UInt32) throws {
        var random = SplitMix64(seed: 11)
        let samples = (0..<360).map { index in
            Sample(
                time: 1_764_000_000_000 + Int64(index) * 10_000 + Int64(random.next() % 40), state: .up,
                roundTrip: 1_200 + UInt32(random.next() % 60), responseTime: base + UInt32(random.next() % UInt64(spread)))
        }
        let block = SampleBlock(samples)
        try expectEqual(block.samples(), samples)
        let withoutResponseTimes = SampleBlock(samples.map { Sample(time: $0.time, state: $0.state, roundTrip: $0.roundTrip) })
        let added = Double(block.bytes.count - withoutResponseTimes.bytes.count) / Double(samples.count)
        #expect(added <= 2, "\(added) bytes")
        for sample in samples { expectEqual(sample.responseTime, sample.responseTime.map(RoundTripScale.rounded)) }
    }

    @Test func `a response time is within 1.25 % of the measured one, and a failed probe has none`() {
        var random = SplitMix64(seed: 12)
        for _ in 0..<10_000 {
            let measured = UInt32(random.next() % 100_000_000)
            let recorded = Sample(time: 0, state: .up, roundTrip: 1, responseTime: measured).responseTime ?? 0
            #expect(abs(Double(recorded) - Double(measured)) <= Double(measured) * 0.0125, "\(measured)")
        }
        expectNil(Sample(time: 0, state: .down, roundTrip: nil, responseTime: 7).responseTime)
    }

    /// Blocks that the version before response times has written.
    @Test(arguments: [
        (
            "AY67kaHFaDOICX//+VOCPjiYCBmhIbI7yLQiEITCCMgKIDIB6g1QeoS0D6BFAmgVQJoAECiAZAMgFQBIFEAYAJAFAlAIAOAiAeAyAaAyAaAOAaAsAsAEBkBMAECoAwDxlh+J",
            50
        ),
        ("AY67kaHFaDOICP///Kkx/p74mZyUSTwR0PIVQbAbgIArB2DcLYNwXg3BCBYFgIA4AgoA4EAKAwDgQAYDAGAIAgMBgAAgENA4JgkBAIBAcM8aGYs=", 0),
    ])
    func `a block of an earlier version is read, and becomes one of this version`(base64: String, answered: Int) throws {
        let block = SampleBlock(bytes: [UInt8](try #require(Data(base64Encoded: base64))))
        let samples = try block.samples()
        #expect(samples.count == 51 && samples.filter(\.isResult).count == 50)
        #expect(samples.filter { $0.roundTrip != nil }.count == answered && samples.allSatisfy { $0.responseTime == nil })
        expectEqual(SampleBlock(samples, .roundTrips).bytes, block.bytes)
        let next = Sample(time: samples[50].time + 500, state: .up, roundTrip: 3, responseTime: 40)
        try expectEqual(SampleBlock(samples.joined(with: [next])).samples(), samples + [next])
    }

    @Test func `the samples of an hour need at most three bytes each`() throws {
        var random = SplitMix64(seed: 7)
        let samples = (0..<360).map { index in
            let jitter = Int64(random.next() % 40)
            return Sample(
                time: 1_764_000_000_000 + Int64(index) * 10_000 + jitter, state: .up,
                roundTrip: 1_200 + UInt32(random.next() % 60))
        }
        let block = SampleBlock(samples)
        #expect(block.bytes.count <= 3 * samples.count + 20, "\(block.bytes.count) bytes")
        try expectEqual(block.samples(), samples)
    }

    @Test func `an empty block has no samples`() throws {
        try expectEqual(SampleBlock([]).samples(), [])
    }

    @Test func `extreme values are kept`() throws {
        let limit = SampleBlock.timeLimit
        let samples = [
            Sample(time: -limit, state: .unknown, roundTrip: .max), Sample(time: limit, state: .notRecorded, roundTrip: nil),
            Sample(time: 0, state: .down, roundTrip: 0), Sample(time: -1, state: .unreachable, roundTrip: 1),
        ]
        try expectEqual(SampleBlock(samples).samples(), samples)
    }

    @Test func `times beyond the limit are encoded as the limit`() throws {
        let samples = [Sample(time: .min, state: .up, roundTrip: 1), Sample(time: .max, state: .up, roundTrip: 1)]
        try expectEqual(SampleBlock(samples).samples().map(\.time), [-SampleBlock.timeLimit, SampleBlock.timeLimit])
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `random samples are the same after encoding, and no damaged byte is accepted`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var time = Int64(random.next() % 4_000_000_000_000)
            let samples = (0..<Int(random.next() % 60)).map { _ in
                time += Int64(random.next() % 100_000) - 20
                let state = RecordedState(rawValue: UInt8(random.next() % 7)) ?? .up
                return Sample(
                    time: time, state: state, roundTrip: random.next() % 4 == 0 ? nil : UInt32(truncatingIfNeeded: random.next()),
                    responseTime: random.next() % 3 == 0
                        ? nil : UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32)))
            }
            let block = SampleBlock(samples)
            try expectEqual(block.samples(), samples, "seed \(seed)")
            var bytes = block.bytes
            bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(1 << (random.next() % 8))
            #expect(throws: SampleBlock.DamageError.self, "seed \(seed)") { try SampleBlock(bytes: bytes).samples() }
            #expect(throws: SampleBlock.DamageError.self, "seed \(seed)") {
                try SampleBlock(bytes: Array(block.bytes.dropLast())).samples()
            }
        }
    }

    @Test(
        arguments: [
            [], [2], [3, 0, 0], [0, 0, 0], [2, 0, 1], [1, 0], [1, 0, 1], [1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
            [1, 0, 1, 1, 9, 0], [1, 0, 1, 0, 4], [1, 0, 0, 0],
        ] as [[UInt8]])
    func `bytes with a right checksum and a wrong content are damaged`(content: [UInt8]) {
        #expect(throws: SampleBlock.DamageError.self) { try SampleBlock(bytes: content + CRC32.bytes(of: content)).samples() }
    }

    @Test func `the checksum is that of RFC 1952`() {
        expectEqual(CRC32.checksum(of: Array("123456789".utf8)), 0xCBF4_3926)
    }
}
