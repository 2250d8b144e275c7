package import Console
import FoundationEssentials
import Reachability

/// The text form of a status document: the path, the interfaces, the targets and the canary in aligned columns.
package struct StatusText {
    package var document: StatusDocument
    package var style: TextStyle
    /// Whether the evidence for each interface's type is written.
    package var showsEvidence: Bool
    /// The columns of the terminal; `nil` if lines are not truncated.
    package var columns: Int?

    package init(document: StatusDocument, style: TextStyle, showsEvidence: Bool = false, columns: Int? = nil) {
        (self.document, self.style, self.showsEvidence, self.columns) = (document, style, showsEvidence, columns)
    }

    package var lines: [String] {
        guard let columns else { return texts }
        return texts.map { DisplayWidth.cutPainted($0, to: max(1, columns - 1), isUnicode: style.isUnicode) }
    }

    private var texts: [String] {
        let path = document.path.path
        let status = style.paint("\(style.symbol(path.assessment)) \(path.status.rawValue)", path.assessment)
        var lines = ["path  \(status)  \(path.sentence)", "", "interfaces"]
        let rows = InterfaceTable.rows(
            path.interfaces, style: style, listsAllAddresses: showsEvidence, columns: columns.map { $0 - 3 } ?? .max)
        for (row, interface) in zip(rows, path.interfaces) {
            lines.append("  \(row)")
            guard showsEvidence else { continue }
            lines += interface.evidence.map { style.paint("      \(TextStyle.printable($0))", .dim) }
        }
        if path.interfaces.isEmpty { lines.append("  none") }
        lines += nameServerLines(path)
        return lines + serverLines("targets", document.targets) + serverLines("canary", [document.canary].compactMap { $0 })
    }

    /// The lines of the name servers with their interfaces, and of the last lookup, after an empty line.
    private func nameServerLines(_ path: NetworkPath) -> [String] {
        let servers = path.nameServers
        let width = servers.map { DisplayWidth.columns($0.description) }.max() ?? 0
        var lines = servers.map { server in
            let interface = server.interface.map { "via \(TextStyle.printable($0))" } ?? "without a route"
            return "  \(TextStyle.pad(TextStyle.printable(server.description), width))  \(interface)"
        }
        if servers.isEmpty { lines.append("  none") }
        let lookup = document.lookup
        let assessment: TextStyle.Assessment =
            lookup.map { $0.cause == nil ? .good : $0.isAnswered ? .neutral : .bad } ?? .neutral
        let text = lookup?.sentence ?? "none of them was asked, so whether they answer is not known"
        lines.append("  " + style.paint("\(style.symbol(assessment)) \(text)", assessment))
        return ["", "DNS servers"] + lines
    }

    /// The lines of servers with their title, after an empty line; none without a server.
    private func serverLines(_ title: String, _ targets: [ServerUpdate]) -> [String] {
        guard !targets.isEmpty else { return [] }
        let width = targets.map { DisplayWidth.columns($0.endpoint.sentence) }.max() ?? 0
        let stateWidth = targets.map(\.state.rawValue.count).max() ?? 0
        let lines = targets.map { target in
            let assessment = target.state.assessment
            let state = TextStyle.pad(target.state.rawValue, target.sentence.isEmpty ? 0 : stateWidth)
            let cells = [
                style.paint(style.symbol(assessment), assessment) + " " + TextStyle.pad(target.endpoint.sentence, width),
                style.paint(state, assessment), target.sentence,
            ]
            return "  " + cells.filter { !$0.isEmpty }.joined(separator: "  ")
        }
        return ["", title] + lines
    }
}
