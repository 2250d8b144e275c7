import Expectations
import Pacing
import Testing

@testable import netwatch_service

@Suite struct SampleBlockTests {
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
                    time: time, state: state, roundTrip: random.next() % 4 == 0 ? nil : UInt32(truncatingIfNeeded: random.next()))
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
            [], [2], [1, 0], [1, 0, 1], [1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [1, 0, 1, 1, 9, 0], [1, 0, 1, 0, 4], [1, 0, 0, 0],
        ] as [[UInt8]])
    func `bytes with a right checksum and a wrong content are damaged`(content: [UInt8]) {
        #expect(throws: SampleBlock.DamageError.self) { try SampleBlock(bytes: content + CRC32.bytes(of: content)).samples() }
    }

    @Test func `the checksum is that of RFC 1952`() {
        expectEqual(CRC32.checksum(of: Array("123456789".utf8)), 0xCBF4_3926)
    }
}
