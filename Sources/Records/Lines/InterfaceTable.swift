package import Console
import FoundationEssentials
package import Reachability

/// A table of interfaces in aligned columns: name, kind, level, addresses. Addresses that do not fit into the terminal are
/// counted.
package enum InterfaceTable {
    package static func rows(
        _ interfaces: [NetworkInterface], style: TextStyle, listsAllAddresses: Bool = false, columns: Int = .max
    ) -> [String] {
        let names = interfaces.map { TextStyle.printable($0.name) }
        let nameWidth = names.map(DisplayWidth.columns).max() ?? 0
        let kindWidth = interfaces.map(\.kindSentence.count).max() ?? 0
        let levelWidth = interfaces.map(\.level.rawValue.count).max() ?? 0
        return zip(names, interfaces).map { name, interface in
            let level = TextStyle.pad(interface.level.rawValue, interface.addresses.isEmpty ? 0 : levelWidth)
            let (name, kind) = (TextStyle.pad(name, nameWidth), TextStyle.pad(interface.kindSentence, kindWidth))
            let taken = DisplayWidth.columns("\(name)  \(kind)  \(level)  ")
            let limit = listsAllAddresses ? Int.max : PathChanges.listedAddresses
            let cells = [
                name, kind, style.paint(level, interface.level >= .degraded ? .green : .dim),
                interface.addressSentence(limit: limit, columns: columns - taken),
            ]
            return cells.filter { !$0.isEmpty }.joined(separator: "  ")
        }
    }
}
