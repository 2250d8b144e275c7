import Expectations
import Testing

@testable import netwatch_service

@Suite struct HistoryPeriodTests {
    /// 2026-11-25T12:00:00Z.
    private static let noon: Int64 = 1_795_608_000_000

    @Test(arguments: [
        ("2026-11-25T11:59:58.318Z", 1_682), ("2026-11-25T12:59:58.5+01:00", 1_500), ("2026-11-25 11:59:58.0009", 2_000),
        ("2026-11-25T11:59:58.318999999Z", 1_682), ("2026-11-25T11:59:58Z", 2_000),
    ])
    func `the times of records are accepted, of which milliseconds count`(text: String, milliseconds: Int) throws {
        let ago = Int64(milliseconds)
        let since = try HistoryPeriod(since: text, until: nil, now: Self.noon, offset: { _ in 0 })
        expectEqual(since.range, Self.noon - ago..<Self.noon)
        let until = try HistoryPeriod(since: "1h", until: text, now: Self.noon, offset: { _ in 0 })
        expectEqual(until.range, Self.noon - 3_600_000..<Self.noon - ago)
    }

    @Test(arguments: [
        "2026-11-25T11:59:58.Z", "2026-11-25T11:59:58.0123456789Z", "2026-11-25T11:59.5Z", "2026-11-25T11:59:58,5Z",
    ])
    func `another fraction is not a time`(text: String) {
        let reason = "'\(text)' is not a time; \(HistoryPeriod.form)"
        #expect(throws: HistoryPeriod.Invalid(parameter: "since", reason: reason)) {
            try HistoryPeriod(since: text, until: nil, now: Self.noon, offset: { _ in 0 })
        }
    }
}
