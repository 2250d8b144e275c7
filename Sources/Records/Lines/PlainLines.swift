import Console
import FoundationEssentials
import Reachability

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
