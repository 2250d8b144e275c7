import Console
import Reachability

/// How transfers are told of: a picture, lines, or records. Pure: what is to be written comes back as text.
enum Presentation {
    /// On a terminal.
    case live(LivePicture)
    /// In a pipe, a file or a terminal that cannot move its cursor.
    case lines(StatusLines)
    /// For programs.
    case records
    /// Errors only.
    case quiet
}

/// The picture on a terminal: a line for each transfer under way, and above it those that are over.
struct LivePicture {
    /// At most ten pictures a second.
    static let interval: Int64 = 100_000_000
    /// While nothing comes: the clock of what is waited for goes on.
    static let idleInterval: Int64 = 1_000_000_000

    var style: TextStyle
    var words: StateWords
    var columns: Int
    var rows: Int
    private var block = LiveBlock()

    init(style: TextStyle, words: StateWords, columns: Int, rows: Int) {
        self.style = style
        self.words = words
        self.columns = columns
        self.rows = rows
    }

    /// What to write; `permanent` stays above.
    mutating func frame(
        _ statuses: [TransferStatus], permanent: [String] = [], isFresh: Bool = false, at now: Moment
    ) -> String {
        let active = statuses.filter { !$0.phase.isOver && $0.phase != .queued }
        let width = active.map { DisplayWidth.columns(DisplayWidth.harmless($0.name, isUnicode: style.isUnicode)) }.max() ?? 0
        let layout = ProgressLine(style: style, words: words, columns: columns)
        // A terminal that is lower than the picture would scroll with each one.
        let shown = max(1, rows - 2)
        var lines = active.prefix(active.count > shown ? shown - 1 : shown).map { layout.text($0, nameWidth: width, at: now) }
        if active.count > lines.count {
            lines.append(DisplayWidth.cut("and \(active.count - lines.count) more", to: columns - 1, isUnicode: style.isUnicode))
        }
        return block.frame(permanent: permanent, live: Array(lines), columns: columns, isFresh: isFresh)
    }

    /// The line that stays of a transfer that is done.
    func finished(_ status: TransferStatus) -> String {
        let symbol = style.paint(style.symbol(.good), .good)
        return "\(symbol) \(DisplayWidth.harmless(status.name, isUnicode: style.isUnicode))  \(words.ending(status))"
    }
}

/// A line for each change of state.
struct StatusLines {
    var words: StateWords
    /// Whether requests and answers are told too.
    var isVerbose = false

    /// The line for an event that has changed the state to this one; `nil`: none.
    func line(_ event: TransferEvent, _ status: TransferStatus, isOther: Bool, at now: Moment) -> String? {
        let name = if case .saved = event { status.requestedName } else { status.name }
        return text(event, status, isOther: isOther, at: now).map { TextStyle.printable("\(name): \($0)") }
    }

    private func text(_ event: TransferEvent, _ status: TransferStatus, isOther: Bool, at now: Moment) -> String? {
        switch event {
        case .started: return "\(status.direction == .upload ? "to" : "from") \(ShortURL.text(status.url))"
        case .requested: return isVerbose ? "attempt \(status.attempt)" : nil
        case .answered(let code, let phrase):
            if isOther, code == 200, status.attempt > 1 { return "goes on, from the beginning" }
            return isVerbose ? "the server answered \(code) \(phrase)" : nil
        case .measured: return nil
        case .silent: return words.silence(status, at: now)
        case .diagnosed:
            guard isOther, status.phase != .connecting, let state = words.words(status, at: now) else { return nil }
            return state
        case .redirected(let address): return isVerbose ? "redirected to \(ShortURL.text(address))" : nil
        case .continued(let offset, let total):
            let whole = total.map { " of \(ByteCount.text($0))" } ?? ""
            // Of then: more may have come since.
            let share = TransferStatus.percent(offset, of: total).map { "\($0) %" } ?? ByteCount.text(offset)
            return "continued at \(share) (\(ByteCount.text(offset))\(whole))"
        case .failedForNow, .networkGone:
            guard isOther, let state = words.words(status, at: now) else { return nil }
            return status.bytes > 0
                ? "\(status.percent.map { "\($0) %" } ?? ByteCount.text(status.bytes)), \(state)" : state
        case .unchanged: return nil
        case .saved: return isOther ? "saved as \(status.name)" : nil
        case .finished: return words.ending(status)
        // They have a line of their own, as errors have.
        case .failed, .stopped: return nil
        }
    }
}

/// When a record is due: on each change of what a program acts on, and twice a second while bytes come or go.
struct RecordPacing {
    static let interval: Int64 = 500_000_000

    private struct Told: Hashable {
        var word: TransferStatus.Word
        var layer: Cause.Layer?
        var code: Cause.Code?
        var resumedFrom: Int64?
        var attempt: Int
        var bytes: Int64
        var total: Int64?
        var at: Int64
    }

    private var told: [Int: Told] = [:]

    /// Whether the transfer at this place has something to say.
    mutating func isDue(_ status: TransferStatus, of place: Int, at now: Moment) -> Bool {
        let time = now.monotonicNanoseconds
        let present = Told(
            word: status.word, layer: status.cause?.layer, code: status.cause?.code, resumedFrom: status.resumedFrom,
            attempt: status.attempt, bytes: status.bytes,
            total: status.total, at: time)
        if let last = told[place] {
            let isChange = (last.word, last.resumedFrom, last.attempt) != (present.word, present.resumedFrom, present.attempt)
            let isOtherCause = (last.layer, last.code) != (present.layer, present.code)
            let isMore = last.bytes != present.bytes || last.total != present.total
            guard isChange || isOtherCause || (isMore && time - last.at >= Self.interval) else { return false }
        }
        told[place] = present
        return true
    }
}
