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

    private enum Column: String, CaseIterable {
        case loss, last, min, median, p95, jitter, response

        /// The columns of a table whose targets have these results.
        static func columns(_ targets: [ProbeStatistics]) -> [Column] {
            allCases.filter { $0 != .response || targets.contains(where: \.endpoint.hasOwnResponseTime) }
        }

        var width: Int { Swift.max(ProbeTable.cellWidth, rawValue.count) }
    }

    /// The columns in the order in which a narrow terminal loses them. The others always stay.
    private static let dispensable: [Column] = [.jitter, .p95, .min, .median, .response, .last]
    /// The least columns beside a name: a longer name has a line of its own, so that the columns keep their place.
    private static let leastBesideName = 3
    private static let cellWidth = 6
    private static let gap = 2
    private static let indentation = 2
    private static let longestSparkline = 60
    /// On a terminal with fewer rows, the title has one line.
    private static let leastRowsForTitle = 8

    /// The columns of a table, and the place of the names.
    private struct Layout {
        var columns: [Column]
        /// The width of the names before the columns; `nil` if each name has a line of its own above them.
        var nameWidth: Int?
        var sparkWidth = 0

        init(_ all: [Column], longestName: Int, width: Int) {
            columns = all
            var beside = columns
            for column in dispensable where longestName + ProbeTable.width(of: beside) > width && beside.count > leastBesideName {
                beside.removeAll { $0 == column }
            }
            if longestName + ProbeTable.width(of: beside) <= width {
                (columns, nameWidth) = (beside, longestName)
            } else {
                for column in dispensable where indentation + ProbeTable.width(of: columns) > width {
                    columns.removeAll { $0 == column }
                }
            }
            guard columns.count == all.count else { return }
            sparkWidth = min(longestSparkline, width - (nameWidth ?? indentation) - ProbeTable.width(of: columns) - gap)
        }
    }

    private static func width(of columns: [Column]) -> Int { columns.reduce(0) { $0 + gap + $1.width } }

    /// The columns that a line may use: a terminal may wrap a line that fills it.
    private var width: Int { max(1, columns - 1) }

    /// The lines of the table, none wider than the terminal, and at most as many as fit on it. Names are never cut: a narrow terminal shows
    /// fewer columns, and long names have lines of their own.
    ///
    /// - Parameters:
    ///   - targets: the results so far.
    ///   - interval: the time between the probes of a target.
    ///   - elapsed: the time since the start.
    /// - Returns: the title, the head of the table, the rows, and the causes.
    package func lines(_ targets: [ProbeStatistics], interval: Duration, elapsed: Duration) -> [String] {
        let names = targets.map { DisplayWidth.harmless($0.endpoint.sentence, isUnicode: style.isUnicode) }
        let layout = Layout(
            Column.columns(targets), longestName: max(names.map(DisplayWidth.columns).max() ?? 0, "target".count), width: width)
        let sent = targets.map(\.sent).max() ?? 0
        let count = targets.count == 1 ? "1 target" : "\(targets.count) targets"
        let title =
            "\(count), every \(TimeSpan.exact(interval)), \(sent) sent in \(TimeSpan.rough(elapsed)), times in ms; Ctrl-C prints the summary"
        let titleLines = rows < Self.leastRowsForTitle ? [cut(title)] : WrappedText.lines(title, columns: width, indentation: 2)
        let margin = layout.nameWidth.map { TextStyle.pad("target", $0) } ?? String(repeating: " ", count: Self.indentation)
        let head = margin + layout.columns.map { cell($0.rawValue, $0.width) }.joined()
        var lines = (titleLines + [cut(head)]).map { style.paint($0, .dim) }
        // A terminal with few rows would scroll with each frame.
        let room = max(1, rows - 1 - lines.count)
        var shown: [[String]] = []
        for (target, name) in zip(targets, names) {
            let block = row(target, name, layout)
            // The last line is for the number of the others.
            let isLast = shown.count == targets.count - 1
            guard shown.joined().count + block.count <= room - (isLast ? 0 : 1) else { break }
            shown.append(block)
        }
        lines += shown.joined()
        if shown.count < targets.count { lines.append(cut("and \(targets.count - shown.count) more")) }
        for target in targets {
            guard target.recent.last == .lost, let cause = target.cause else { continue }
            let text = "\(style.symbol(.bad)) \(target.endpoint.sentence)  \(cause.sentence)"
            let wrapped = WrappedText.lines(
                DisplayWidth.harmless(text, isUnicode: style.isUnicode), columns: width, indentation: 4
            ).flatMap { pieces($0) }
            guard lines.count + wrapped.count < rows else { break }
            lines += wrapped.map { style.paint($0, .bad) }
        }
        return lines
    }

    private func row(_ target: ProbeStatistics, _ name: String, _ layout: Layout) -> [String] {
        let cells = layout.columns.map { cell(value($0, of: target), $0.width) }.joined()
        let assessment: TextStyle.Assessment =
            target.sent == 0
            ? .neutral : target.recent.last == .lost ? .bad : (target.lossThousandths ?? 0) > 0 ? .uncertain : .good
        let gap = String(repeating: " ", count: Self.gap)
        let marks = layout.sparkWidth > 2 ? gap + sparkline(target.recent.suffix(layout.sparkWidth)) : ""
        if let nameWidth = layout.nameWidth { return [style.paint(TextStyle.pad(name, nameWidth), assessment) + cells + marks] }
        return pieces(name).map { style.paint($0, assessment) } + [
            String(repeating: " ", count: Self.indentation) + cells + marks
        ]
    }

    private func value(_ column: Column, of target: ProbeStatistics) -> String {
        func text(_ time: Duration?) -> String { time.map(Self.milliseconds) ?? "-" }
        return switch column {
        case .loss: target.lossThousandths.map(ProbeText.percent) ?? "-"
        case .last: text(target.recent.last?.roundTrip)
        case .min: text(target.shortest)
        case .median: text(target.recentPercentile(50))
        case .p95: text(target.recentPercentile(95))
        case .jitter: text(target.jitter)
        case .response: text(target.recentResponseMedian)
        }
    }

    private func cell(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: Self.gap + max(0, width - DisplayWidth.columns(text))) + text
    }

    private func cut(_ text: String) -> String { DisplayWidth.cut(text, to: width, isUnicode: style.isUnicode) }

    /// Returns a text without colors in pieces that fit the terminal: a word that is longer than a line.
    private func pieces(_ text: String) -> [String] {
        var pieces = [""]
        var used = 0
        for character in text {
            let columns = DisplayWidth.columns(String(character))
            if used > 0, used + columns > width {
                pieces.append("")
                used = 0
            }
            pieces[pieces.count - 1].append(character)
            used += columns
        }
        return pieces
    }

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
