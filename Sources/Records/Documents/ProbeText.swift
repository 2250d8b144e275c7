package import Console
import FoundationEssentials
package import Reachability

/// The text of `probe`: one line for each probe, then a table of the results.
package struct ProbeText {
    private let style: TextStyle
    private let targetWidth: Int
    private let numberWidth: Int
    /// The times of the lines; `nil` for none.
    private var times: TimeText?
    private var hasBegun = false
    /// The columns of the terminal; `nil` if lines are not wrapped.
    package var columns: Int?

    /// Creates the format for targets with these texts, and at most `count` probes of each; 0 for any number.
    package init(targets: [String], count: Int, style: TextStyle, columns: Int? = nil, time: TimeText? = nil) {
        self.style = style
        times = time
        self.columns = columns
        targetWidth = min(40, targets.lazy.map { DisplayWidth.columns(TextStyle.printable($0)) }.max() ?? 0)
        numberWidth = count == 0 ? 4 : "\(count)".count
    }

    /// Returns the lines of a probe: one, or several on a narrow terminal. `number` counts the target's probes from 1.
    package mutating func lines(_ report: ProbeReport, number: Int) -> [String] {
        let indentation = 2 + targetWidth + 2 + numberWidth + 2 + ReadableDuration.width + 2
        let line = line(report, number: number)
        guard times != nil else { return wrapped(line, indentation: indentation) }
        // A line in a file or pipe has its whole time, as those of `watch` have.
        if columns == nil, let times, times.choice != .relative { return ["\(times.full(report.moment)) \(line)"] }
        if !hasBegun { times?.begin(at: report.moment) }
        // The first line follows its date too.
        let first = hasBegun ? nil : times?.date(report.moment)
        hasBegun = true
        let date = times?.newDate(report.moment) ?? first
        let time = times?.clock(report.moment) ?? ""
        let margin = rightAligned(time, times?.width ?? 0)
        return (date.map { [style.paint($0, .dim)] } ?? [])
            + wrapped("\(style.paint(margin, .dim)) \(line)", indentation: indentation + margin.count + 1)
    }

    private func line(_ report: ProbeReport, number: Int) -> String {
        let assessment: TextStyle.Assessment = report.succeeded ? .good : .bad
        let cells = [
            style.paint(style.symbol(assessment), assessment) + " " + TextStyle.pad(report.endpoint.sentence, targetWidth),
            rightAligned("\(number)", numberWidth),
            rightAligned(
                report.roundTrip.map(ReadableDuration.text) ?? (report.succeeded ? "-" : ""), ReadableDuration.width),
            detail(report),
        ]
        return cells.joined(separator: "  ")
    }

    private func detail(_ report: ProbeReport) -> String {
        let resolved = report.resolution.map { "resolved in \(ReadableDuration.text($0))" }
        if let cause = report.cause { return style.paint(cause.sentence, .bad) }
        let lost = report.lostPackets > 0 ? "\(report.lostPackets) \(report.lostPackets == 1 ? "packet" : "packets") lost" : nil
        let responseTime = report.endpoint.hasOwnResponseTime ? report.responseTime : nil
        let response = responseTime.map { "response in \(ReadableDuration.text($0))" }
        return [report.address.map { "from \($0)" }, response, resolved, lost].compactMap { $0 }.joined(separator: ", ")
    }

    /// Returns the table of the results, after an empty line. If a row is wider than the terminal, the target has a line of its own above its
    /// numbers; if these are still wider, the last columns are left out.
    package func summary(_ targets: [ProbeStatistics]) -> [String] {
        let hasResponseTimes = targets.contains(where: \.endpoint.hasOwnResponseTime)
        let heads = ["target", "sent", "ok", "loss", "min", "median", "max", "jitter"] + (hasResponseTimes ? ["response"] : [])
        let rows = targets.map { cells($0) + (hasResponseTimes ? [Self.time($0.responsePercentiles([50])[0])] : []) }
        let widths = heads.indices.map { column in
            ([heads] + rows).lazy.map { DisplayWidth.columns($0[column]) }.max() ?? 0
        }
        func isTooWide(_ width: Int) -> Bool { columns.map { width >= $0 } ?? false }
        let isNameAbove = isTooWide(widths.reduce(0) { $0 + 2 + $1 } - 2)
        var count = heads.count
        // Two spaces before each number. The targets, `sent`, `ok` and `loss` stay.
        while isNameAbove, count > 4, isTooWide(widths[1..<count].reduce(0) { $0 + 2 + $1 }) { count -= 1 }
        /// The numbers of a row, behind the target if there is room for both.
        func line(_ cells: [String]) -> String {
            let numbers = (1..<count).map { "  " + rightAligned(cells[$0], widths[$0]) }.joined()
            return isNameAbove ? numbers : TextStyle.pad(cells[0], widths[0]) + numbers
        }
        var lines = ["", style.paint(line(heads), .dim)]
        for (target, row) in zip(targets, rows) {
            let cause = target.cause.map { "  " + style.paint($0.sentence, target.ok == 0 ? .bad : .uncertain) } ?? ""
            if isNameAbove { lines.append(row[0]) }
            if isTooWide(DisplayWidth.paintedColumns(line(row) + cause)) {
                // The cause has lines of its own below the row.
                lines += [line(row)] + wrapped(cause, indentation: 4)
            } else {
                lines.append(line(row) + cause)
            }
        }
        return lines
    }

    private func cells(_ target: ProbeStatistics) -> [String] {
        let times = [target.shortest, target.median, target.longest, target.jitter]
        return [
            target.endpoint.sentence, "\(target.sent)", "\(target.ok)", target.lossThousandths.map(Self.percent) ?? "-",
        ] + times.map(Self.time)
    }

    private static func time(_ time: Duration?) -> String { time.map(ReadableDuration.text) ?? "-" }

    /// Returns thousandths as percent: `0 %`, `33.3 %`, `100 %`.
    static func percent(_ thousandths: Int) -> String {
        thousandths % 10 == 0 ? "\(thousandths / 10) %" : "\(thousandths / 10).\(thousandths % 10) %"
    }

    private func rightAligned(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - DisplayWidth.columns(text))) + text
    }

    private func wrapped(_ line: String, indentation: Int) -> [String] {
        columns.map { WrappedText.lines(line, columns: max(1, $0 - 1), indentation: indentation) } ?? [line]
    }
}
