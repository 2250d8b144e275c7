import Console
import FoundationEssentials
import Reachability

/// Records as plain text, one line each, for a pipe or a file that a person reads: `TIME TYPE SUBJECT STATUS WHY`.
struct PlainLines {
    var header: StreamHeader
    var style: TextStyle

    func line(_ record: Record) -> String {
        let time = Timestamp.text(record.event.moment)
        let dropped = record.superseded > 0 ? " [\(record.superseded) superseded]" : ""
        return "\(style.paint(time, .dim)) \(TextStyle.pad(record.kind.rawValue, 6)) \(words(record))\(dropped)"
    }

    private func words(_ record: Record) -> String {
        switch record.event {
        case .path(let update):
            let status = style.paint(update.path.status.rawValue, update.path.mood)
            let reasons = update.reasons.isEmpty ? "" : " (\(update.reasons.map(\.rawValue).joined(separator: " ")))"
            let start = update.isInitial ? "netwatch \(header.version): path " : ""
            return "\(start)\(status) \(update.path.sentence)\(reasons)"
        case .server(_, let update):
            let status = style.paint(update.state.rawValue, update.state.mood)
            return [update.endpoint.sentence, status, update.sentence].filter { !$0.isEmpty }.joined(separator: " ")
        case .probe(_, let report):
            let outcome = style.paint(report.succeeded ? "ok" : "failed", report.succeeded ? .good : .bad)
            return "\(report.endpoint.sentence) \(outcome) \(report.sentence)"
        case .resync(let reason, _):
            return "the kernel was asked anew: \(reason.rawValue)"
        case .gap(let from, let to):
            return "suspended from \(Timestamp.text(from)) to \(Timestamp.text(to))"
        case .ended:
            return "stopped"
        }
    }
}
