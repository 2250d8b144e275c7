import Expectations
import Foundation
import Pacing
import Testing

@testable import netwatch_service

@Suite struct TargetLedgerEncodingTests {
    @Test func `a ledger that the version before response times has written is read`() throws {
        let base64 =
            "AQABvL+UocVogIq6n8VogN3bAaYC8b8BAAAAAAAyAAAAAwEDAAEIAwQugNCCnMVogLiZKaYC8b8BAAAAAAAyAAAAAwEDAAEIAwQuty/VFg=="
        let bytes = try #require(Data(base64Encoded: base64))
        let ledger = try #require(TargetLedger.decode([UInt8](bytes))?.ledger)
        #expect(ledger.currentHour.probes == 50 && ledger.currentHour.roundTrips.count == 50)
        expectEqual(ledger.currentHour.responseTimes.count, 0)
    }

    @Test(.skippedByThreadSanitizer, arguments: 1...20 as ClosedRange<UInt64>)
    func `a ledger is the same after encoding, and a damaged one is refused`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var calendar = try DayCalendarTests.calendar("Europe/Berlin")
        var ledger = TargetLedger(.up, at: Int64(random.next() % 2_000_000_000_000), in: &calendar)
        ledger.setOutageLimit(Int64(random.next() % 50_000))
        for _ in 0..<random.next() % 500 {
            let roundTrip = random.next() % 3 == 0 ? nil : UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32))
            let state = RecordedState.allCases[Int(random.next() % 7)]
            let time = ledger.end + Int64(random.next() % 100_000)
            let responseTime =
                random.next() % 3 == 0 ? nil : UInt32(truncatingIfNeeded: random.next() >> (32 + random.next() % 32))
            _ = ledger.add(
                Sample(time: time, state: state, roundTrip: roundTrip, responseTime: responseTime), in: &calendar)
        }
        let bytes = ledger.bytes(isActive: seed % 2 == 0)
        let decoded = try #require(TargetLedger.decode(bytes))
        expectEqual(decoded.isActive, (seed % 2 == 0))
        #expect(decoded.ledger.state == ledger.state && decoded.ledger.end == ledger.end)
        #expect(decoded.ledger.currentHour == ledger.currentHour && decoded.ledger.currentDay == ledger.currentDay)
        expectEqual(decoded.ledger.outages, ledger.outages)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= UInt8(1 << (random.next() % 8))
            expectNil(TargetLedger.decode(damaged), "seed \(seed)")
            expectNil(TargetLedger.decode(Array(bytes[..<index])))
        }
        // A ledger of an earlier version has no response times.
        let former = try #require(TargetLedger.decode(ledger.bytes(isActive: true, .roundTrips))?.ledger)
        #expect(former.currentDay.roundTrips == ledger.currentDay.roundTrips && former.currentDay.responseTimes.count == 0)
        // With a right checksum, any content is read without a trap.
        for _ in 0..<500 {
            var content = Array(bytes.dropLast(4))
            content[Int(random.next() % UInt64(content.count))] = UInt8(truncatingIfNeeded: random.next())
            _ = TargetLedger.decode(content + CRC32.bytes(of: content))
        }
    }
}
