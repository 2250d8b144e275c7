import Expectations
import Testing

@testable import Reachability

/// The local times of files of the tz database, which the tests write (RFC 9636).
@Suite struct TimeZoneRulesTests {
    /// The content of a file: changes of the offset in seconds, and the rule for the time after them.
    static func file(_ changes: [(time: Int64, offset: Int32)] = [], first: Int32 = 0, rule: String = "") -> [UInt8] {
        func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
        func header(times: Int, types: Int) -> [UInt8] {
            Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
                + [0, 0, 0, times, types, 1].flatMap { bytes(UInt32($0)) }
        }
        func type(_ offset: Int32) -> [UInt8] { bytes(offset) + [0, 0] }
        // A reader of the second block skips the first one, also if it is not empty.
        let old = header(times: 1, types: 1) + bytes(Int32(7)) + [0] + type(1) + [0]
        let new =
            header(times: changes.count, types: changes.count + 1) + changes.flatMap { bytes($0.time) }
            + changes.indices.map { UInt8($0 + 1) } + type(first) + changes.flatMap { type($0.offset) } + [0]
        return old + new + Array("\n\(rule)\n".utf8)
    }

    static func zone(_ rule: String) throws -> TimeZoneRules { try #require(TimeZoneRules(file(rule: rule))) }

    @Test(
        arguments: [
            // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z.
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_774_745_999, 3_600), ("CET-1CEST,M3.5.0,M10.5.0/3", 1_774_746_000, 7_200),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_792_889_999, 7_200), ("CET-1CEST,M3.5.0,M10.5.0/3", 1_792_890_000, 3_600),
            // South of the equator summer is at both ends of a year: 2026-04-04T16:00:00Z and 2026-10-03T16:00:00Z.
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_775_318_399, 39_600), ("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_775_318_400, 36_000),
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_791_043_199, 36_000), ("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_791_043_200, 39_600),
            ("<+0330>-3:30", 1_774_745_999, 12_600), ("EST5", 0, -18_000),
            // A whole year of summer time (RFC 9636 section 3.3.1).
            ("AAA3BBB4,0/0,J365/23", 1_774_745_999, -14_400),
            // Days by number: 1 March is the 60th also in 2028, a leap year.
            ("AAA0BBB,J60/0,J61/0", 1_835_481_600, 3_600), ("AAA0BBB,J60/0,J61/0", 1_835_481_599, 0),
            ("AAA0BBB,59/0,60/0", 1_835_395_200, 3_600), ("AAA0BBB,59/0,60/0", 1_835_395_199, 0),
        ] as [(String, Int64, Int64)])
    func `a rule gives the offset of each time`(rule: String, time: Int64, offset: Int64) throws {
        try expectEqual(Self.zone(rule).offset(at: time), offset)
    }

    @Test func `changes precede the rule, and the first offset precedes them`() throws {
        let bytes = Self.file([(100, 60), (200, 120)], first: 30, rule: "AAA-1")
        let zone = try #require(TimeZoneRules(bytes))
        let times: [Int64] = [.min, 99, 100, 199, 200, .max]
        expectEqual(times.map(zone.offset), [30, 30, 60, 60, 3_600, 3_600])
        let endless = try #require(TimeZoneRules(Self.file([(100, 60)], first: 30)))
        expectEqual([99, 100, 1_000_000].map(endless.offset), [30, 60, 60])
        expectEqual(TimeZoneRules.utc.offset(at: 1_774_745_999), 0)
    }

    @Test func `a damaged file is none, wherever it ends`() {
        let bytes = Self.file([(100, 60)], rule: "CET-1CEST,M3.5.0,M10.5.0/3")
        for length in bytes.indices { expectNil(TimeZoneRules(Array(bytes.prefix(length))), "\(length) bytes") }
        for rule in [
            "C-1", "CET", "CET-25", "CET-1CEST,M3.5.0", "CET-1CEST,M13.1.0,M1.1.0", "CET-1CEST,M3.6.0,M1.1.0", "CET-1CEST,J0,J1",
            "CET-1CEST,366,1", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1x", "<CET-1", "CET-1:60",
        ] {
            expectNil(TimeZoneRules(Self.file(rule: rule)), "\(rule)")
        }
        expectNil(TimeZoneRules(Self.file([(200, 60), (100, 60)])), "the times do not ascend")
        expectNil(TimeZoneRules(Self.file([(100, 90_000_000)])), "an offset of years")
    }
}
