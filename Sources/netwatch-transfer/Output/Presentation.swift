import Console
import Reachability

/// The form in which transfers are reported: a live display, lines, or records. It does no I/O: it returns the text to write.
enum Presentation {
    /// A display that is redrawn on a terminal.
    case live(LiveDisplay)
    /// Lines for a pipe, a file or a terminal that cannot move its cursor.
    case lines(StatusLines)
    /// Records for programs.
    case records
    /// Only errors.
    case quiet
}

/// The live display on a terminal: one line for each active transfer, below the lines of finished ones.
struct LiveDisplay {
    /// The minimum time between frames in nanoseconds: at most ten frames per second.
    static let interval: Int64 = 100_000_000
    /// The time between frames while no bytes arrive, in nanoseconds: waiting times on the display still advance.
    static let idleInterval: Int64 = 1_000_000_000

    var style: TextStyle
    var stateText: StateText
    var columns: Int
    var rows: Int
    private var block = LiveBlock()

    init(style: TextStyle, stateText: StateText, columns: Int, rows: Int) {
        self.style = style
        self.stateText = stateText
        self.columns = columns
        self.rows = rows
    }

    /// Returns the text to write. `permanent` lines stay above the display, broken at words if they are too wide.
    mutating func frame(
        _ statuses: [TransferStatus], permanent: [String] = [], isFresh: Bool = false, at now: Moment
    ) -> String {
        let active = statuses.filter { !$0.phase.isFinal && $0.phase != .queued }
        let width = active.map { DisplayWidth.columns(DisplayWidth.harmless($0.name, isUnicode: style.isUnicode)) }.max() ?? 0
        let layout = ProgressLine(style: style, stateText: stateText, columns: columns)
        // If the terminal had fewer rows than the display, it would scroll with each frame.
        let shown = max(1, rows - 2)
        var lines = active.prefix(active.count > shown ? shown - 1 : shown).map { layout.text($0, nameWidth: width, at: now) }
        if active.count > lines.count {
            lines.append(DisplayWidth.cut("and \(active.count - lines.count) more", to: columns - 1, isUnicode: style.isUnicode))
        }
        let above = permanent.flatMap { WrappedText.lines($0, columns: max(1, columns - 1), indentation: 2) }
        return block.frame(permanent: above, live: Array(lines), columns: columns, isFresh: isFresh)
    }

    /// Returns the permanent line for a finished transfer.
    func finished(_ status: TransferStatus) -> String {
        let symbol = style.paint(style.symbol(.good), .good)
        return "\(symbol) \(DisplayWidth.harmless(status.name, isUnicode: style.isUnicode))  \(stateText.ending(status))"
    }
}

/// The report with one line for each change of state.
struct StatusLines {
    var stateText: StateText
    /// Whether requests and responses are reported too.
    var isVerbose = false

    /// Returns the line for an event that led to this status; `nil` for none.
    func line(_ event: TransferEvent, _ status: TransferStatus, isOther: Bool, at now: Moment) -> String? {
        let name = if case .saved = event { status.requestedName } else { status.name }
        return text(event, status, isOther: isOther, at: now).map { TextStyle.printable("\(name): \($0)") }
    }

    private func text(_ event: TransferEvent, _ status: TransferStatus, isOther: Bool, at now: Moment) -> String? {
        switch event {
        case .started: return "\(status.direction == .upload ? "to" : "from") \(ShortURL.text(status.url))"
        case .requested: return isVerbose ? "attempt \(status.attempt)" : nil
        case .answered(let code, let phrase):
            if isOther, code == 200, status.attempt > 1 { return "restarted from the beginning" }
            return isVerbose ? "the server answered \(code) \(phrase)" : nil
        case .measured: return nil
        case .silent: return stateText.silence(status, at: now)
        case .diagnosed:
            guard isOther, status.phase != .connecting, let state = stateText.text(status, at: now) else { return nil }
            return state
        case .redirected(let address):
            return isVerbose ? "redirected to \(ShortURL.text(UserInformation.withoutPassword(address)))" : nil
        case .continued(let offset, let total):
            let totalText = total.map { " of \(ByteCount.text($0))" } ?? ""
            // The share at that moment: more bytes may have arrived since.
            let share = TransferStatus.percent(offset, of: total).map { "\($0) %" } ?? ByteCount.text(offset)
            return "continued at \(share) (\(ByteCount.text(offset))\(totalText))"
        case .failedForNow, .networkGone:
            guard isOther, let state = stateText.text(status, at: now) else { return nil }
            return status.bytes > 0
                ? "\(status.percent.map { "\($0) %" } ?? ByteCount.text(status.bytes)), \(state)" : state
        case .unchanged: return nil
        case .saved: return isOther ? "saved as \(status.name)" : nil
        case .finished: return stateText.ending(status)
        // These have their own line, like errors.
        case .failed, .stopped: return nil
        }
    }
}

/// The pacing of records: one for each change of state, cause, attempt or offset, and two per second while bytes are transferred.
struct RecordPacing {
    static let interval: Int64 = 500_000_000

    private struct Published: Hashable {
        var state: TransferStatus.RecordState
        var layer: Cause.Layer?
        var code: Cause.Code?
        var resumedFrom: Int64?
        var attempt: Int
        var bytes: Int64
        var total: Int64?
        var at: Int64
    }

    private var published: [Int: Published] = [:]

    /// Returns whether a record is due for the transfer at this place.
    mutating func isDue(_ status: TransferStatus, of place: Int, at now: Moment) -> Bool {
        let time = now.monotonicNanoseconds
        let current = Published(
            state: status.recordState, layer: status.cause?.layer, code: status.cause?.code, resumedFrom: status.resumedFrom,
            attempt: status.attempt, bytes: status.bytes,
            total: status.total, at: time)
        if let last = published[place] {
            let isChange = (last.state, last.resumedFrom, last.attempt) != (current.state, current.resumedFrom, current.attempt)
            let isOtherCause = (last.layer, last.code) != (current.layer, current.code)
            let isMore = last.bytes != current.bytes || last.total != current.total
            guard isChange || isOtherCause || (isMore && time - last.at >= Self.interval) else { return false }
        }
        published[place] = current
        return true
    }
}
