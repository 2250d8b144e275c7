package import Console
import FoundationEssentials
import Reachability

/// The output format of a stream.
package enum OutputFormat: Hashable {
    /// One line of JSON per record.
    case json
    /// One line of text per record, for pipes and files.
    case plain(TextStyle)
    /// Lines with details and relative times, for terminals.
    case live(TextStyle)
}

/// A printer that converts the records of one stream to lines.
package struct RecordPrinter {
    private let encoder: RecordEncoder
    private var plain: PlainLines?
    private var live: LiveLines?

    /// Creates a printer. - Parameter time: the times of text; `nil` for relative ones on a terminal, and UTC in a pipe.
    package init(format: OutputFormat, header: StreamHeader, isVerbose: Bool = false, time: TimeText? = nil) {
        encoder = RecordEncoder(header: header)
        switch format {
        case .json: (plain, live) = (nil, nil)
        case .plain(let style): (plain, live) = (PlainLines(header: header, style: style, isVerbose: isVerbose, time: time), nil)
        case .live(let style): (plain, live) = (nil, LiveLines(header: header, style: style, isVerbose: isVerbose, time: time))
        }
    }

    /// Whether the lines are for a terminal, and wrapped to ``columns``.
    package var isLive: Bool { live != nil }

    /// The terminal's columns.
    package var columns: Int? {
        get { live?.columns }
        set { live?.columns = newValue }
    }

    /// Returns the record's lines without their newlines.
    package mutating func lines(_ record: Record) -> [[UInt8]] {
        if let lines = live?.lines(record) { return lines.map { Array($0.utf8) } }
        if let line = plain?.line(record) { return [Array(line.utf8)] }
        // Most records are shorter.
        return [encoder.encode(record, capacity: 1 << 10)]
    }
}

/// The format of a stream in a pipe or a file that a person reads: one line per record, `TIME TYPE SUBJECT STATUS WHY`.
struct PlainLines {
    var header: StreamHeader
    var style: TextStyle
    /// Whether the reasons of changes are written.
    var isVerbose = false
    private var path: NetworkPath?
    private var times: TimeText

    init(header: StreamHeader, style: TextStyle, isVerbose: Bool = false, time: TimeText? = nil) {
        times = time ?? TimeText(.utc) { _ in 0 }
        (self.header, self.style, self.isVerbose) = (header, style, isVerbose)
    }

    mutating func line(_ record: Record) -> String {
        if record.kind == .hello { times.begin(at: record.event.moment) }
        let time = times.full(record.event.moment)
        defer { if case .path(let update) = record.event { path = update.path } }
        let dropped = record.superseded > 0 ? " [\(record.superseded) superseded]" : ""
        return "\(style.paint(time, .dim)) \(TextStyle.pad(record.kind.rawValue, 6)) \(text(record))\(dropped)"
    }

    private func text(_ record: Record) -> String {
        switch record.event {
        case .path(let update):
            let status = style.paint(update.path.status.rawValue, update.path.assessment)
            let names = update.reasons.map(\.rawValue).joined(separator: " ")
            let reasons = isVerbose && !names.isEmpty ? " (\(names))" : ""
            let former = update.isInitial ? nil : path
            let texts = former.map { PathChanges(old: $0, new: update.path, isUnicode: style.isUnicode).texts } ?? []
            let changes = texts.isEmpty ? "" : " (\(texts.joined(separator: ", ")))"
            let start = update.isInitial ? "netwatch \(header.version): path " : ""
            return "\(start)\(status) \(update.path.sentence)\(changes)\(reasons)"
        case .server(_, let update):
            let status = style.paint(update.statusWords, update.assessment)
            return [record.nameSentence(update.endpoint), status, update.sentence].filter { !$0.isEmpty }.joined(separator: " ")
        case .probe(_, let report):
            let outcome = style.paint(report.succeeded ? "ok" : "failed", report.succeeded ? .good : .bad)
            return "\(record.nameSentence(report.endpoint)) \(outcome) \(report.sentence)"
        case .incident(let incident):
            let state = style.paint(incident.stateSentence, incident.assessment)
            return "\(incident.subjectSentence(record.targetNames)) \(state) \(incident.sentence(record.targetNames))"
        case .resync(let reason, _):
            return "the kernel's state was read again: \(reason.rawValue)"
        case .gap(let from, let to):
            return "\(record.gapReason.sentence) from \(Timestamp.text(from)) to \(Timestamp.text(to))"
        case .ended:
            return "stopped"
        }
    }
}
