import Expectations
import Testing

@testable import netwatch_transfer

/// The lines about reports that were not delivered.
@Suite struct DeliverySummaryTests {
    private func lines(_ change: (inout DeliverySummary) -> Void) -> [String] {
        var summary = DeliverySummary()
        change(&summary)
        return summary.lines("backup", directory: "/d")
    }

    @Test func `delivered reports have no line`() {
        expectEmpty(lines { $0.isDelivered = true })
    }

    @Test func `reports that wait have one line with the reason`() {
        expectEqual(
            lines { ($0.obstacle, $0.waitingCount) = ("refused", 1) },
            ["backup: the report waits in /d for the next run: refused"])
        expectEqual(
            lines { ($0.obstacle, $0.waitingCount) = ("refused", 3) },
            ["backup: 3 reports wait in /d for the next run: refused"])
    }

    @Test func `reports that are refused have one line with the first reason`() {
        expectEqual(lines { $0.refuse("404") }, ["backup: the report was dropped: 404"])
        expectEqual(
            lines {
                $0.refuse("404")
                $0.refuse("413")
            }, ["backup: 2 reports were dropped: 404"])
    }

    @Test func `a report that can neither be delivered nor wait is lost`() {
        expectEqual(
            lines { ($0.obstacle, $0.lost) = ("refused", (1, "disk full")) },
            ["backup: the report is lost: refused; it cannot wait: disk full"])
    }

    @Test func `a fault of the directory has one line, however often it occurs`() {
        expectEqual(
            lines {
                $0.note("'x' is damaged")
                $0.note("'x' is damaged")
            }, ["'x' is damaged"])
    }
}
