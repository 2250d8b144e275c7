import Expectations
import Testing

@testable import Reachability

/// The times of a schedule of cron, in UTC and where clocks change.
@Suite struct CronScheduleTests {
    private static let berlin = "CET-1CEST,M3.5.0,M10.5.0/3"

    /// The first times of a schedule after one, as texts in UTC.
    private static func times(_ text: String, after start: String, _ rule: String? = nil, count: Int = 3) throws -> [String] {
        let schedule = try CronSchedule(text)
        let zone = try rule.map { try TimeZoneRulesTests.zone($0) } ?? .utc
        var time = try seconds(start)
        return try (0..<count).map { _ in
            time = try #require(schedule.next(after: time, in: zone), "\(text)")
            return String(Timestamp.text(wallClockNanoseconds: time * 1_000_000_000).prefix(16))
        }
    }

    /// The time of a text such as `2026-12-01T02:30`.
    static func seconds(_ text: String) throws -> Int64 {
        let parts = text.split { "-T:".contains($0) }.compactMap { Int64($0) }
        try #require(parts.count == 5)
        return Timestamp.days(year: parts[0], month: parts[1], day: parts[2]) * 86_400 + parts[3] * 3_600 + parts[4] * 60
    }

    @Test(arguments: [
        ("* * * * *", ["2026-12-31T23:59", "2027-01-01T00:00", "2027-01-01T00:01"]),
        ("*/20 * * * *", ["2027-01-01T00:00", "2027-01-01T00:20", "2027-01-01T00:40"]),
        ("5,50-52 4 * * *", ["2027-01-01T04:05", "2027-01-01T04:50", "2027-01-01T04:51"]),
        ("0 3 * * mon-fri", ["2027-01-01T03:00", "2027-01-04T03:00", "2027-01-05T03:00"]),
        ("0 3 * * 5-7", ["2027-01-01T03:00", "2027-01-02T03:00", "2027-01-03T03:00"]),
        ("0 3 * * 0/2", ["2027-01-02T03:00", "2027-01-03T03:00", "2027-01-05T03:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 31 * *", ["2027-01-31T00:00", "2027-03-31T00:00", "2027-05-31T00:00"]),
        // Either day suffices if both are given (crontab(5)).
        ("0 0 13 * fri", ["2027-01-01T00:00", "2027-01-08T00:00", "2027-01-13T00:00"]),
        ("0 0 */2 * fri", ["2027-01-01T00:00", "2027-01-15T00:00", "2027-01-29T00:00"]),
        ("0 12 1 JAN,jul *", ["2027-01-01T12:00", "2027-07-01T12:00", "2028-01-01T12:00"]),
        ("@weekly", ["2027-01-03T00:00", "2027-01-10T00:00", "2027-01-17T00:00"]),
        ("@Yearly", ["2027-01-01T00:00", "2028-01-01T00:00", "2029-01-01T00:00"]),
    ])
    func `a schedule has its times in their order`(text: String, times: [String]) throws {
        try expectEqual(Self.times(text, after: "2026-12-31T23:58"), times)
    }

    @Test(arguments: [
        // 02:30 is skipped on 29 March 2026, and the job runs at the change.
        ("30 2 * * *", "2026-03-28T00:00", ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
        // 02:30 comes twice on 25 October 2026, and the first one counts.
        ("30 2 * * *", "2026-10-24T00:00", ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"]),
        // A job of any hour follows the clocks.
        ("30 * * * *", "2026-03-28T23:59", ["2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"]),
        ("30 * * * *", "2026-10-24T23:59", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"]),
        // Three skipped times are one run.
        ("0,20,40 2 29 3 *", "2026-03-28T00:00", ["2026-03-29T01:00", "2027-03-29T00:00", "2027-03-29T00:20"]),
        ("0 0 * * *", "2026-03-28T12:00", ["2026-03-28T23:00", "2026-03-29T22:00", "2026-03-30T22:00"]),
    ])
    func `a skipped time runs at the change, and a repeated one once`(text: String, after: String, times: [String]) throws {
        try expectEqual(Self.times(text, after: after, Self.berlin), times)
    }

    @Test func `a midnight that clocks skip runs at the change, of the same night`() throws {
        // Clocks go from 24:00 on Saturday to 01:00 on Sunday, 4 October 2026.
        let rule = "<-04>4<-03>,M10.1.0/0,M3.4.0/0"
        try expectEqual(
            Self.times("15 0 * * *", after: "2026-10-03T12:00", rule, count: 2), ["2026-10-04T04:00", "2026-10-05T03:15"])
    }

    @Test(arguments: [
        ("", "'' has 0 fields; write five: minute, hour, day of the month, month, day of the week"),
        ("* * * *", "'* * * *' has 4 fields; write five: minute, hour, day of the month, month, day of the week"),
        ("60 * * * *", "minute: '60' is not one of 0 to 59"), ("* 24 * * *", "hour: '24' is not one of 0 to 23"),
        ("* * 0 * *", "day of the month: '0' is not one of 1 to 31"), ("* * * foo *", "month: 'foo' is not one of 1 to 12"),
        ("* * * * 8", "day of the week: '8' is not one of 0 to 7"), ("5-1 * * * *", "minute: '5-1' ends before it begins"),
        ("*/0 * * * *", "minute: '0' is not a step of 1 or more"), ("1,,2 * * * *", "minute: '' is not one of 0 to 59"),
        ("*/99999999999999999999 * * * *", "minute: '99999999999999999999' is not a step of 1 or more"),
        ("-1 * * * *", "minute: '' is not one of 0 to 59"),
        ("0 0 31 2 *", "'0 0 31 2 *' never runs: no such month has such a day"),
        ("@reboot", "'@reboot' is not known; write five fields, or @hourly, @daily, @weekly, @monthly or @yearly"),
    ])
    func `a text that is no schedule has its reason`(text: String, reason: String) {
        let error = #expect(throws: CronSchedule.Invalid.self) { try CronSchedule(text) }
        expectEqual(error?.description, reason)
    }

    @Test func `a time far away has a next one without an overflow`() throws {
        let schedule = try CronSchedule("0 0 * * *")
        for time in [Int64.min, .max] { #expect(schedule.next(after: time, in: .utc) != nil) }
    }
}
