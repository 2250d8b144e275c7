package import Console
import FoundationEssentials
import Reachability

/// The text form of a status document: the path, the interfaces, the targets and the canary in aligned columns.
package struct StatusText {
    package var document: StatusDocument
    package var style: TextStyle
    /// Whether the evidence for each interface's type is written.
    package var showsEvidence: Bool
    /// The columns of the terminal; `nil` if lines are not wrapped.
    package var columns: Int?
    /// The names of the targets; empty if they are their texts.
    package var names: [String] = []
    /// The name of the machine whose service has answered; `nil` for the state that this program has found. The lookups of a service are not
    /// known.
    package var instance: String?

    package init(document: StatusDocument, style: TextStyle, showsEvidence: Bool = false, columns: Int? = nil) {
        (self.document, self.style, self.showsEvidence, self.columns) = (document, style, showsEvidence, columns)
    }

    package var lines: [String] {
        guard let columns else { return rows.map(\.text) }
        return rows.flatMap { WrappedText.lines($0.text, columns: max(1, columns - 1), indentation: $0.indentation) }
    }

    /// A line, and the spaces before its continuation on a narrow terminal.
    private typealias Row = (text: String, indentation: Int)

    private var rows: [Row] {
        let path = document.path.path
        let status = style.paint("\(style.symbol(path.assessment)) \(path.status.rawValue)", path.assessment)
        var rows: [Row] = instance.map { [(TextStyle.printable("service \($0)"), 0)] } ?? []
        rows += [("path  \(status)  \(path.sentence)", 6), ("", 0), ("interfaces", 0)]
        let table = InterfaceTable.rows(
            path.interfaces, style: style, listsAllAddresses: showsEvidence, columns: columns.map { $0 - 3 } ?? .max)
        for (row, interface) in zip(table, path.interfaces) {
            rows.append(("  \(row)", 6))
            guard showsEvidence else { continue }
            rows += interface.evidence.map { (style.paint("      \(TextStyle.printable($0))", .dim), 8) }
        }
        if path.interfaces.isEmpty { rows.append(("  none", 0)) }
        rows += nameServerRows(path)
        return rows + serverRows("targets", document.targets, names)
            + serverRows("canary", [document.canary].compactMap { $0 })
    }

    /// The lines of the name servers with their interfaces, and of the last lookup, after an empty line.
    private func nameServerRows(_ path: NetworkPath) -> [Row] {
        let servers = path.nameServers
        let width = servers.map { DisplayWidth.columns($0.description) }.max() ?? 0
        var lines = servers.map { server in
            let interface = server.interface.map { "via \(TextStyle.printable($0))" } ?? "without a route"
            return "  \(TextStyle.pad(TextStyle.printable(server.description), width))  \(interface)"
        }
        if servers.isEmpty { lines.append("  none") }
        guard instance == nil else { return [("", 0), ("DNS servers", 0)] + lines.map { ($0, 4) } }
        let lookup = document.lookup
        let assessment: TextStyle.Assessment =
            lookup.map { $0.cause == nil ? .good : $0.isAnswered ? .neutral : .bad } ?? .neutral
        let text = lookup?.sentence ?? "none of them was asked, so whether they answer is not known"
        lines.append("  " + style.paint("\(style.symbol(assessment)) \(text)", assessment))
        return [("", 0), ("DNS servers", 0)] + lines.map { ($0, 4) }
    }

    /// The lines of servers with their title, after an empty line; none without a server.
    private func serverRows(_ title: String, _ targets: [ServerUpdate], _ names: [String] = []) -> [Row] {
        guard !targets.isEmpty else { return [] }
        let names = names.isEmpty ? targets.map(\.endpoint.sentence) : names
        let width = names.map { DisplayWidth.columns($0) }.max() ?? 0
        let statusWidth = targets.map(\.statusName.rawValue.count).max() ?? 0
        let rows: [Row] = zip(targets, names).flatMap { target, name -> [Row] in
            [row(2, (name, width), (target.statusName, statusWidth), target.sentence)] + addressRows(target.addresses)
        }
        return [("", 0), (title, 0)] + rows
    }

    /// The lines of the addresses of a target that are all probed, below its own.
    private func addressRows(_ addresses: [AddressStatus]) -> [Row] {
        let width = addresses.map { $0.address.description.count }.max() ?? 0
        let statusWidth = addresses.map(\.statusName.rawValue.count).max() ?? 0
        return addresses.map { row(4, ($0.address.description, width), ($0.statusName, statusWidth), $0.sentence) }
    }

    /// A line of columns: a symbol with a name, a status, and a sentence that wraps below its own beginning.
    private func row(
        _ indentation: Int, _ name: (text: String, width: Int), _ status: (name: StatusName, width: Int), _ sentence: String
    ) -> Row {
        let assessment = status.name.assessment
        let cells = [
            style.paint(style.symbol(assessment), assessment) + " " + TextStyle.pad(name.text, name.width),
            style.paint(TextStyle.pad(status.name.rawValue, sentence.isEmpty ? 0 : status.width), assessment), sentence,
        ]
        let text = String(repeating: " ", count: indentation) + cells.filter { !$0.isEmpty }.joined(separator: "  ")
        return (text, indentation + 2 + name.width + 2 + status.width + 2)
    }
}
