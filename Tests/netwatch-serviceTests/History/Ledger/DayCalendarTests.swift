import Expectations
import FoundationEssentials
import Testing

@testable import netwatch_service

@Suite struct DayCalendarTests {
    private static let hour: Int64 = 3_600_000

    @Test(arguments: [
        ("UTC", "2026-11-25T12:00:00Z", 24), ("Europe/Berlin", "2026-03-29T12:00:00Z", 23),
        ("Europe/Berlin", "2026-10-25T12:00:00Z", 25),
        ("Europe/Berlin", "2026-10-25T23:30:00Z", 24), ("Asia/Kathmandu", "2026-01-01T00:00:00Z", 24),
        ("America/Havana", "2026-03-08T12:00:00Z", 23), ("America/Havana", "2026-11-01T12:00:00Z", 25),
    ])
    func `a day has 23 or 25 hours at a change of daylight saving time`(zone: String, time: String, hours: Int64) throws {
        var calendar = try Self.calendar(zone)
        let time = try Self.time(time)
        let day = calendar.day(containing: time)
        #expect(day.contains(time))
        expectEqual(day.upperBound - day.lowerBound, hours * Self.hour)
    }

    @Test(arguments: [
        "UTC", "Europe/Berlin", "America/Havana", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
        "Asia/Tehran",
    ])
    func `days follow each other without a gap and without an overlap`(zone: String) throws {
        var calendar = try Self.calendar(zone)
        // Apia had no 30 December 2011.
        var time = try Self.time("2011-11-01T00:00:00Z")
        let end = try Self.time("2013-01-15T00:00:00Z")
        var previous: Range<Int64>?
        while time < end {
            let day = calendar.day(containing: time)
            #expect(day.contains(time), "\(zone) \(time)")
            if let previous, previous != day {
                expectEqual(previous.upperBound, day.lowerBound, "\(zone) \(time)")
            }
            previous = day
            time += 5 * Self.hour / 2
        }
    }

    static func calendar(_ name: String) throws -> DayCalendar {
        let zone = try #require(TimeZone(identifier: name))
        return DayCalendar(offset: zone.offset)
    }

    static func time(_ text: String) throws -> Int64 {
        Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970 * 1_000)
    }
}
