import Expectations
import FoundationEssentials
import Testing

@testable import netwatch_service

@Suite struct LocalClockTests {
    /// Returns the text of a period, on a board of a time zone at a time.
    private static func text(_ period: (String, String), in zone: String, at now: String) throws -> String {
        func time(_ text: String) throws -> Int64 { Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970) * 1_000 }
        var (board, calendar) = (PageSamples.board(), try DayCalendarTests.calendar(zone))
        let now = try time(now)
        board.moment = PageSamples.moment(now)
        board.timeZoneOffset = Int(try #require(TimeZone(identifier: zone)).offset(now) / 1_000)
        board.cells = BarFrame(at: now, in: &calendar).cells
        return LocalClock(board).interval(try time(period.0)..<time(period.1))
    }

    @Test(arguments: [
        ("2026-11-27T13:00:00Z", "2026-11-27T14:00:00Z", "13:00–14:00"),
        ("2026-11-26T14:00:00Z", "2026-11-26T15:00:00Z", "Thu 26 Nov 14:00–15:00"),
        ("2026-11-26T23:00:00Z", "2026-11-27T00:00:00Z", "Thu 26 Nov 23:00–00:00"),
        ("2026-11-26T22:00:00Z", "2026-11-27T13:00:00Z", "Thu 26 Nov 22:00 to Fri 27 Nov 13:00"),
        ("2026-11-26T15:00:00Z", "2026-11-27T14:00:00Z", "Thu 26 Nov 15:00 to Fri 27 Nov 14:00"),
        ("2026-11-20T18:00:00Z", "2026-11-27T12:00:00Z", "Fri 20 Nov 18:00 to Fri 27 Nov 12:00"),
        ("2026-11-26T00:00:00Z", "2026-11-27T00:00:00Z", "Thu 26 Nov"),
        ("2026-11-21T00:00:00Z", "2026-11-28T00:00:00Z", "Sat 21 Nov to Fri 27 Nov"),
    ])
    func `a period has its day if it is within it, and days alone if it consists of them`(
        start: String, end: String, expected: String
    ) throws {
        try expectEqual(Self.text((start, end), in: "UTC", at: "2026-11-27T14:29:00Z"), expected)
    }

    @Test(arguments: [
        // Clocks went back on 25 October: the day began at 22:00 UTC and ended at 23:00 UTC.
        ("2026-10-19T22:00:00Z", "2026-10-20T22:00:00Z", "Tue 20 Oct"),
        ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "Sun 25 Oct"),
        ("2026-10-19T22:00:00Z", "2026-10-26T23:00:00Z", "Tue 20 Oct to Mon 26 Oct"),
        ("2026-10-25T22:00:00Z", "2026-10-26T22:00:00Z", "Sun 25 Oct 23:00 to Mon 26 Oct 23:00"),
        ("2026-10-26T00:00:00Z", "2026-10-27T00:00:00Z", "Mon 26 Oct 01:00 to Tue 27 Oct 01:00"),
    ])
    func `a day before a change of daylight saving time is a day`(start: String, end: String, expected: String) throws {
        try expectEqual(Self.text((start, end), in: "Europe/Berlin", at: "2026-10-27T12:00:00Z"), expected)
    }
}

@Suite struct PageTextTests {
    @Test(arguments: [
        (1, "0.001 ms"), (9, "0.009 ms"), (99, "0.099 ms"), (100, "0.10 ms"), (219, "0.21 ms"), (4_390, "4.3 ms"),
        (120_900, "120 ms"), (1_290_000, "1.2 s"),
    ])
    func `a round trip has two digits or more, down to a microsecond`(microseconds: Int, text: String) {
        expectEqual(PageText.roundTrip(.microseconds(microseconds)), text)
    }
}
