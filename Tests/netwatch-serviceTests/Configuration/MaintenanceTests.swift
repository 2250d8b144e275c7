import Expectations
import Testing

@testable import netwatch_service

@Suite struct MaintenanceTests {
    private static let targets = "groups: [web]\ntargets:\n- {id: shop, name: Shop, target: \"a:1\", group: web}\n"

    @Test func `a window has a time once or each week`() throws {
        let windows = try YAML.configuration(
            Self.targets + """
                maintenance:
                  - {targets: [shop, web], from: 2026-12-01 02:00, to: 2026-12-01T04:30:10}
                  - {weekly: Sun 02:05, duration: 2h}
                """
        ).maintenance
        expectEqual(windows[0].targets, ["shop", "web"])
        guard case .once(let from, let to) = windows[0].schedule else { throw YAML.Problems(description: "\(windows[0])") }
        expectEqual("\(from)", "2026-12-01T02:00:00")
        expectEqual("\(to)", "2026-12-01T04:30:10")
        expectEqual(windows[1], MaintenanceWindow(targets: [], schedule: .weekly(try WeekTime("sunday 02:05"), .seconds(7_200))))
    }

    @Test(arguments: [
        ("{from: 2026-12-01 02:00}", "a maintenance window needs 'from' and 'to', or 'weekly' and 'duration'"),
        ("{from: 2026-12-02 02:00, to: 2026-12-01 02:00}", "'to' must be later than 'from'"),
        ("{from: 2026-12-01 02:00, to: 2026-12-01 02:00}", "'to' must be later than 'from'"),
        ("{from: 2026-02-29 02:00, to: 2026-12-01 02:00}", "there is no such time"),
        ("{from: yesterday, to: 2026-12-01 02:00}", "not a time"),
        ("{weekly: sonday 02:00, duration: 1h}", "not a time of the week"),
        ("{weekly: sunday 25:00, duration: 1h}", "not a time of the week"),
        ("{weekly: sunday 02:00, duration: 169h}", "'duration' is longer than a week"),
        (
            "{targets: [shpo], weekly: sunday 02:00, duration: 1h}",
            "'shpo' is no id, name or group of a target; the nearest is 'shop'"
        ),
    ])
    func `a window that is not valid is an error`(window: String, reason: String) throws {
        let problems = YAML.problems("\(Self.targets)maintenance:\n- \(window)")
        expectEqual(problems.count, 1, "\(problems)")
        #expect(try #require(problems.first).contains(reason), "\(problems)")
    }

    @Test(arguments: [
        ("2026-12-01T02:00:00Z", "2026-12-01T02:00:00Z"), ("2026-12-01T02:00:00+01:00", "2026-12-01T02:00:00+01:00"),
        ("2026-12-01 02:00:00-03:30", "2026-12-01T02:00:00-03:30"), ("2028-02-29 00:00", "2028-02-29T00:00:00"),
        ("2026-12-01T02:00:00.5Z", "2026-12-01T02:00:00.500Z"),
        ("2026-12-01 02:00:00.042999999+01:00", "2026-12-01T02:00:00.042+01:00"),
    ])
    func `times are read with and without an offset`(text: String, expected: String) throws {
        expectEqual("\(try LocalTime(text))", expected)
    }

    @Test func `an offset counts in the order of times`() throws {
        #expect(try LocalTime("2026-12-01T02:00:00+02:00").isBefore(try LocalTime("2026-12-01T01:00:00Z")))
        #expect(try !LocalTime("2026-12-01T01:00:00Z").isBefore(try LocalTime("2026-12-01T02:00:00+02:00")))
        #expect(try LocalTime("2026-12-01T02:00:00.499Z").isBefore(try LocalTime("2026-12-01T02:00:00.5Z")))
        #expect(try LocalTime("2026-01-31T23:59:59Z").isBefore(try LocalTime("2026-02-01T00:00:00Z")))
    }
}
