import Expectations
import FoundationEssentials
import Testing

@testable import netwatch_service

@Suite struct MaintenanceCoverageTests {
    @Test(arguments: [
        // Berlin is two hours before UTC in summer, and one in winter.
        ("2026-07-05T00:00:00Z", true), ("2026-07-05T00:59:59Z", true), ("2026-07-05T01:00:00Z", false),
        ("2026-07-04T23:59:59Z", false), ("2026-12-06T00:30:00Z", false), ("2026-12-06T01:00:00Z", true),
    ])
    func `a weekly window is in local time`(time: String, isCovered: Bool) throws {
        let window = try Self.window(weekly: "sunday 02:00", .seconds(3_600))
        expectEqual(window.covers(try Self.time(time), offset: try Self.offset("Europe/Berlin")), isCovered)
    }

    @Test func `a weekly window may end in the next week`() throws {
        let window = try Self.window(weekly: "sunday 23:00", .seconds(2 * 3_600))
        let utc = try Self.offset("UTC")
        #expect(window.covers(try Self.time("2026-11-30T00:59:00Z"), offset: utc))
        #expect(!window.covers(try Self.time("2026-11-30T01:00:00Z"), offset: utc))
    }

    @Test func `clocks that skip the start begin the window an hour later`() throws {
        // On 29 March, Berlin's clocks go from 02:00 to 03:00, which is 01:00 UTC.
        let window = try Self.window(weekly: "sunday 02:30", .seconds(1_800))
        let berlin = try Self.offset("Europe/Berlin")
        #expect(!window.covers(try Self.time("2026-03-29T01:29:00Z"), offset: berlin))
        #expect(window.covers(try Self.time("2026-03-29T01:30:00Z"), offset: berlin))
    }

    @Test(arguments: [
        ("2026-12-01 02:00", "2026-12-01T01:00:00Z"), ("2026-12-01T02:00:00-03:30", "2026-12-01T05:30:00Z"),
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"), ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ])
    func `a local time has the moment of its zone`(text: String, moment: String) throws {
        try expectEqual(LocalTime(text).time(try Self.offset("Europe/Berlin")), Self.time(moment))
    }

    @Test func `a single window covers its start and not its end`() throws {
        let window = MaintenanceWindow(
            targets: [],
            schedule: .once(from: try LocalTime("2026-12-01T02:00:00Z"), to: try LocalTime("2026-12-01T03:00:00Z")))
        let utc = try Self.offset("UTC")
        #expect(!window.covers(try Self.time("2026-12-01T01:59:59Z"), offset: utc))
        #expect(window.covers(try Self.time("2026-12-01T02:00:00Z"), offset: utc))
        #expect(!window.covers(try Self.time("2026-12-01T03:00:00Z"), offset: utc))
    }

    private static func window(weekly: String, _ duration: Duration) throws -> MaintenanceWindow {
        MaintenanceWindow(targets: [], schedule: .weekly(try WeekTime(weekly), duration))
    }

    private static func time(_ text: String) throws -> Int64 {
        Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970 * 1_000)
    }

    private static func offset(_ zone: String) throws -> TimeZoneOffset {
        let zone = try #require(TimeZone(identifier: zone))
        return zone.offset
    }
}
