import Console
import Reachability

/// The line of one transfer on a terminal, fitted to its width.
struct ProgressLine: Hashable {
    var style: TextStyle
    var stateText: StateText
    /// The columns of the terminal. The last one stays empty: a full line would wrap.
    var columns: Int

    private static let barWidths = 10...40
    private static let shortestName = 8

    /// Returns the line. Names take `nameWidth` columns if there is room.
    func text(_ status: TransferStatus, nameWidth: Int, at now: Moment) -> String {
        let room = max(1, columns - 1)
        let name = DisplayWidth.harmless(status.name, isUnicode: style.isUnicode)
        let wanted = min(max(nameWidth, 1), max(Self.shortestName, room / 3))
        let percent = status.percent.map { String(repeating: " ", count: $0 < 10 ? 2 : $0 < 100 ? 1 : 0) + "\($0) %" } ?? "     "
        if let state = stateText.text(status, at: now) {
            let known = status.bytes > 0 ? "  \(percent)" : ""
            let head = DisplayWidth.fill(name, to: min(wanted, room), isUnicode: style.isUnicode)
            let safe = DisplayWidth.harmless(state, isUnicode: style.isUnicode)
            let left = room - DisplayWidth.columns(head) - known.count - 2
            // If there is little room, the state is more useful than the name.
            guard left >= 12 else { return paint(DisplayWidth.cut(safe, to: room, isUnicode: style.isUnicode), status) }
            return "\(head)\(known)  " + paint(DisplayWidth.cut(safe, to: left, isUnicode: style.isUnicode), status)
        }
        let amount = amount(status)
        let rate = pad(status.rate(at: now).map(ByteCount.rate) ?? "", 12)
        let left = pad(status.timeLeft(at: now).map { Self.clock($0) } ?? "", 9)
        let choices: [[String]] = [
            [percent, amount, rate, left], [percent, rate, left], [percent, left], [percent],
        ]
        for (number, parts) in choices.enumerated() {
            let tail = parts.map { "  \($0)" }.joined()
            let space = room - tail.count - wanted
            guard space >= 0 || number == choices.count - 1 else { continue }
            let head = DisplayWidth.fill(name, to: max(0, min(wanted, room - tail.count)), isUnicode: style.isUnicode)
            let width = min(space - 4, Self.barWidths.upperBound)
            guard number == 0, width >= Self.barWidths.lowerBound, status.total != nil else {
                return DisplayWidth.cut(head + tail, to: room, isUnicode: style.isUnicode)
            }
            return "\(head)  \(bar(status, width))\(tail)"
        }
        return ""
    }

    private func paint(_ text: String, _ status: TransferStatus) -> String {
        style.paint(text, status.problem == nil ? .neutral : .uncertain)
    }

    private func bar(_ status: TransferStatus, _ width: Int) -> String {
        let done = Double(status.bytes) / Double(max(1, status.total ?? 1))
        let filled = max(0, min(width, Int(Double(width) * done)))
        let head =
            filled > 0 && filled < width ? String(repeating: "=", count: filled - 1) + ">" : String(repeating: "=", count: filled)
        return "[\(head)\(String(repeating: " ", count: width - filled))]"
    }

    private func amount(_ status: TransferStatus) -> String {
        let bytes = ByteCount.text(status.bytes)
        return pad(status.total.map { "\(bytes)/\(ByteCount.text($0))" } ?? bytes, 19)
    }

    private func pad(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    /// Returns the remaining time as `0:12` or `1:02:03`.
    private static func clock(_ duration: Duration) -> String {
        let seconds = Int64((duration.milliseconds / 1000).rounded(.up))
        let two = { (number: Int64) in number < 10 ? "0\(number)" : "\(number)" }
        guard seconds < 360_000 else { return "> 100 h" }
        guard seconds >= 3600 else { return "\(seconds / 60):\(two(seconds % 60))" }
        return "\(seconds / 3600):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    }
}
