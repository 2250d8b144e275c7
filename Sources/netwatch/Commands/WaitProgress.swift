import Console
import FoundationEssentials
import Reachability

/// The report of `wait` while it waits: a line on a terminal that is redrawn, or with `-v` a line for each other reason. It does no I/O: it
/// returns the text to write.
struct WaitProgress {
    enum Format {
        /// A line that is redrawn on a terminal.
        case live(TextStyle)
        /// A line for each change, for a pipe, a file or a terminal that cannot move its cursor.
        case lines
    }

    /// The time before the first line on a terminal: most waits are shorter, or need no line.
    static let delay = Duration.milliseconds(500)
    /// The least time between two lines of a pipe.
    static let gap = Duration.seconds(1)

    private let format: Format
    private let start: Moment
    private let limit: Duration?
    /// The columns of the terminal.
    var columns = 80
    private var block = LiveBlock()
    private var written: String?

    /// - Parameters:
    ///   - format: the form of the report.
    ///   - start: the time at which waiting began.
    ///   - limit: the time after which it ends; `nil` for never.
    init(_ format: Format, start: Moment, limit: Duration?) {
        (self.format, self.start, self.limit) = (format, start, limit)
    }

    /// Returns the text to write, and the time of the next call.
    mutating func text(_ condition: WaitCondition, at now: Moment) -> (text: String, next: Moment) {
        let waited = now.elapsed(since: start)
        switch format {
        case .live(let style):
            guard waited >= Self.delay else { return ("", start.advanced(by: Self.delay)) }
            let line = "waiting for \(Self.wholeSeconds(waited))\(limit.map { " of \(TimeSpan.exact($0))" } ?? ""): "
            let lines = WrappedText.lines(
                style.paint(line, .dim) + DisplayWidth.harmless(condition.present(at: now), isUnicode: style.isUnicode),
                columns: columns - 1, indentation: 2)
            return (block.frame(live: lines, columns: columns), start.advanced(by: .seconds(waited.components.seconds + 1)))
        case .lines:
            let present = condition.present(at: now)
            defer { written = present }
            let next = now.advanced(by: Self.gap)
            return (present == written ? "" : "netwatch: wait: \(TextStyle.printable(present))\n", next)
        }
    }

    /// Returns the text that ends the report: a terminal's line is removed, and a pipe learns how long the wait was.
    mutating func end(_ condition: WaitCondition, at now: Moment) -> String {
        switch format {
        case .live: return block.frame(live: [], columns: columns)
        case .lines:
            guard condition.isFulfilled(at: now) else { return "" }
            return "netwatch: wait: the condition holds after \(TimeSpan.rough(now.elapsed(since: start)))\n"
        }
    }

    private static func wholeSeconds(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        return seconds < 60 ? "\(seconds)s" : TimeSpan.rough(duration)
    }
}
