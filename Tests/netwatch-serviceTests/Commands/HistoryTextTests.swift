import Console
import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct HistoryTextTests {
    private let text = """
        2026-08-02T12:00:03.120Z  for 2m03s  interface up0  1 target  link/no-carrier: interface up0 has no carrier
        no incident, no gap and no change of the path
        """

    @Test func `--time replaces the times at the start of lines, and the columns stay aligned`() {
        let now = Moment(monotonicNanoseconds: 0, wallClockNanoseconds: 1_785_679_203_120_000_000)
        func first(_ choice: TimeText.Choice) -> String {
            HistoryOptions.retimed(text, TimeText(choice) { _ in 7_200 }, now: now).split(separator: "\n").first.map {
                String($0.prefix(40))
            } ?? ""
        }
        expectEqual(first(.local), "2026-08-02T14:00:03+02:00  for 2m03s  in")
        expectEqual(first(.utc), "2026-08-02T12:00:03Z  for 2m03s  interfa")
        expectEqual(first(.relative), "2h00m ago  for 2m03s  interface up0  1 t")
        #expect(
            HistoryOptions.retimed(text, TimeText(.local) { _ in 0 }, now: now).hasSuffix(
                "\nno incident, no gap and no change of the path"))
    }

    @Test func `a line of history is broken at words and continues behind its time`() {
        let margin = String(repeating: " ", count: 26)
        expectEqual(
            HistoryOptions.wrapped(text, 60, "history"),
            [
                "2026-08-02T12:00:03.120Z  for 2m03s  interface up0  1", margin + "target  link/no-carrier:",
                margin + "interface up0 has no carrier",
                "no incident, no gap and no change of the path",
            ])
    }
}
