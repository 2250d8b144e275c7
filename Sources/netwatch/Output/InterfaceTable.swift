import Console
import FoundationEssentials
import Reachability

/// Interfaces in aligned columns: name, kind, level, addresses.
enum InterfaceTable {
    static func rows(_ interfaces: [NetworkInterface], style: TextStyle, listsAllAddresses: Bool = false) -> [String] {
        let names = interfaces.map { TextStyle.printable($0.name) }
        let nameWidth = names.map(\.count).max() ?? 0
        let kindWidth = interfaces.map(\.kindSentence.count).max() ?? 0
        let levelWidth = interfaces.map(\.level.rawValue.count).max() ?? 0
        return zip(names, interfaces).map { name, interface in
            let level = TextStyle.pad(interface.level.rawValue, interface.addresses.isEmpty ? 0 : levelWidth)
            let cells = [
                TextStyle.pad(name, nameWidth), TextStyle.pad(interface.kindSentence, kindWidth),
                style.paint(level, interface.level >= .degraded ? .green : .dim),
                listsAllAddresses ? interface.addressSentence : interface.shortAddressSentence,
            ]
            return cells.filter { !$0.isEmpty }.joined(separator: "  ")
        }
    }
}
