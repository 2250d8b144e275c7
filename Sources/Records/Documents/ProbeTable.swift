package import Console
import FoundationEssentials
import Pacing
import Reachability

/// The table of `probe --live`, which is redrawn on a terminal: a row for each target, and the causes of those that do not answer now.
package struct ProbeTable {
    package var style: TextStyle
    package var columns: Int
    package var rows: Int

    package init(style: TextStyle, columns: Int, rows: Int) {
        (self.style, self.columns, self.rows) = (style, columns, rows)
    }

    private static let heads = ["loss", "last", "min", "median", "p95", "jitter"]
    private static let cellWidth = 6
    private static let gap = 2
    /// The columns behind the target's name, without the sparkline.
    private static let tableWidth = heads.count * (gap + cellWidth)
    private static let leastName = 8
    private static let longestSparkline = 60

    /// The lines of the table, none wider than the terminal, and at most as many as fit on it.
    ///
    /// - Parameters:
    ///   - targets: the results so far.
    ///   - interval: the time between the probes of a target.
    ///   - elapsed: the time since the start.
    /// - Returns: the title, the head of the table, the rows, and the causes.
    package func lines(_ targets: [ProbeStatistics], interval: Duration, elapsed: Duration) -> [String] {
        let names = targets.map { DisplayWidth.harmless($0.endpoint.sentence, isUnicode: style.isUnicode) }
        let longest = names.map(DisplayWidth.columns).max() ?? 0
        let nameWidth = max(min(longest, 40, columns - 1 - Self.tableWidth), Self.leastName)
        let sparkWidth = min(Self.longestSparkline, columns - 1 - nameWidth - Self.tableWidth - Self.gap)
        let sent = targets.map(\.sent).max() ?? 0
        let count = targets.count == 1 ? "1 target" : "\(targets.count) targets"
        let title =
            "\(count), every \(TimeSpan.exact(interval)), \(sent) sent in \(TimeSpan.rough(elapsed)), times in ms; Ctrl-C prints the summary"
        let head = TextStyle.pad("target", nameWidth) + Self.heads.map(cell).joined()
        var lines = [title, head].map { style.paint(cut($0), .dim) }
        // A terminal with few rows would scroll with each frame.
        let room = max(1, rows - 1 - lines.count)
        let shown = targets.count <= room ? targets.count : max(0, room - 1)
        for (target, name) in zip(targets.prefix(shown), names) { lines.append(row(target, name, nameWidth, sparkWidth)) }
        if shown < targets.count { lines.append(cut("and \(targets.count - shown) more")) }
        for target in targets {
            guard target.recent.last == .lost, let cause = target.cause else { continue }
            let text = "\(style.symbol(.bad)) \(target.endpoint.sentence)  \(cause.sentence)"
            let wrapped = WrappedText.lines(
                DisplayWidth.harmless(text, isUnicode: style.isUnicode), columns: max(1, columns - 1), indentation: 4)
            guard lines.count + wrapped.count < rows else { break }
            lines += wrapped.map { style.paint($0, .bad) }
        }
        return lines
    }

    private func row(_ target: ProbeStatistics, _ name: String, _ nameWidth: Int, _ sparkWidth: Int) -> String {
        let loss = target.lossThousandths.map(ProbeText.percent) ?? "-"
        let times = [
            target.recent.last?.roundTrip, target.shortest, target.recentPercentile(50), target.recentPercentile(95),
            target.jitter,
        ]
        let cells = ([loss] + times.map { $0.map(Self.milliseconds) ?? "-" }).map(cell)
        let assessment: TextStyle.Assessment =
            target.sent == 0
            ? .neutral : target.recent.last == .lost ? .bad : (target.lossThousandths ?? 0) > 0 ? .uncertain : .good
        let text = style.paint(DisplayWidth.fill(name, to: nameWidth, isUnicode: style.isUnicode), assessment) + cells.joined()
        guard sparkWidth > 2 else { return text }
        return text + String(repeating: " ", count: Self.gap) + sparkline(target.recent.suffix(sparkWidth))
    }

    private func cell(_ text: String) -> String {
        String(repeating: " ", count: Self.gap + max(0, Self.cellWidth - DisplayWidth.columns(text))) + text
    }

    private func cut(_ text: String) -> String { DisplayWidth.cut(text, to: max(1, columns - 1), isUnicode: style.isUnicode) }

    /// Returns a mark for each result, the newest last: its height is the part of the longest round trip that is shown, and `x` is a loss.
    func sparkline(_ outcomes: ArraySlice<ProbeStatistics.Outcome>) -> String {
        let marks = Array(style.isUnicode ? "▁▂▃▄▅▆▇█" : "_.-~=+*#")
        let longest = max(1, outcomes.compactMap { $0.roundTrip?.saturatingNanoseconds }.max() ?? 1)
        return outcomes.map { outcome in
            switch outcome {
            case .lost: return style.paint("x", .bad)
            case .answered(nil): return " "
            case .answered(let roundTrip?):
                let height = Double(max(0, roundTrip.saturatingNanoseconds)) / Double(longest)
                return String(marks[min(marks.count - 1, Int(height * Double(marks.count)))])
            }
        }.joined()
    }

    /// Returns a time with about three significant digits in at most six columns: `0.231`, `12.35`, `123.4`, `3061`.
    static func milliseconds(_ duration: Duration) -> String {
        let microseconds = max(0, duration.saturatingNanoseconds / 1_000)
        let (divisor, decimals): (Int64, Int) =
            switch microseconds {
            case ..<10_000: (1, 3)
            case ..<100_000: (10, 2)
            case ..<1_000_000: (100, 1)
            default: (1_000, 0)
            }
        let digits = "\(microseconds / divisor)"
        guard decimals > 0 else { return digits }
        let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
        return "\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
    }
}
