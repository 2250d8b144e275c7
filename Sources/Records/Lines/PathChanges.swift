import Console
import Reachability

/// The differences between two paths as text: `+203.0.113.5/24`, `gateway 198.18.0.1 → 198.18.0.2`.
struct PathChanges {
    /// The maximum number of listed addresses; the others are counted.
    static let listedAddresses = 4

    var old: NetworkPath
    var new: NetworkPath
    /// Whether the terminal displays `→`.
    var isUnicode: Bool

    /// One text for each difference; addresses beyond the limit are counted.
    var texts: [String] { texts(limit: Self.listedAddresses) }

    /// Returns the texts in one line. Texts that do not fit into `columns` are counted.
    func sentence(columns: Int) -> String {
        let allTexts = texts.joined(separator: ", ")
        guard DisplayWidth.columns(allTexts) > columns else { return allTexts }
        return CountedList(texts(limit: .max), separator: ", ", noun: ("change", "changes")).text(columns: columns)
    }

    // If the status changed, the path's own sentence describes the selection and the routes.
    private func texts(limit: Int) -> [String] {
        var texts = interfaceTexts + addressTexts(limit: limit)
        if old.status == new.status { texts = selectionTexts + texts + routeTexts }
        return texts.map(TextStyle.printable)
    }

    private func change(_ old: String, _ new: String) -> String { "\(old) \(isUnicode ? "→" : "->") \(new)" }

    private var selectionTexts: [String] {
        guard old.interface?.index != new.interface?.index || old.interface?.name != new.interface?.name else { return [] }
        return ["interface " + change(old.interface?.name ?? "none", new.interface?.name ?? "none")]
    }

    private var notable: (old: [NetworkInterface], new: [NetworkInterface]) {
        let indexes = old.notable.union(new.notable)
        return (
            old.interfaces.filter { indexes.contains($0.index) }, new.interfaces.filter { indexes.contains($0.index) }
        )
    }

    private var interfaceTexts: [String] {
        let (before, after) = notable
        var texts = before.filter { one in !after.contains { $0.index == one.index } }.map { "-\($0.name)" }
        for interface in after {
            guard let former = before.first(where: { $0.index == interface.index }) else {
                texts.append("+\(interface.name)")
                continue
            }
            if former.name != interface.name { texts.append(change(former.name, interface.name)) }
            if former.level != interface.level {
                texts.append("\(interface.name) \(change(former.level.rawValue, interface.level.rawValue))")
            }
        }
        return texts
    }

    private func addressTexts(limit: Int) -> [String] {
        let (before, after) = notable
        var texts: [String] = []
        for index in Set((before + after).map(\.index)).sorted() {
            let former = before.first { $0.index == index }
            let present = after.first { $0.index == index }
            let place = index == (new.interface ?? old.interface)?.index ? "" : " (\(present?.name ?? former?.name ?? ""))"
            let (removed, added) = (former?.addresses ?? [], present?.addresses ?? [])
            texts += added.filter { !removed.contains($0) }.map { "+\($0)\(place)" }
            // The addresses of a removed interface are not listed.
            if present != nil { texts += removed.filter { !added.contains($0) }.map { "-\($0)\(place)" } }
        }
        guard texts.count > limit else { return texts }
        return texts.prefix(limit) + ["\(texts.count - limit) more addresses changed"]
    }

    private var routeTexts: [String] {
        var texts: [String] = []
        if old.gateways != new.gateways {
            let text = { (gateways: [NetworkPath.Gateway]) in
                gateways.isEmpty ? "none" : gateways.map(\.description).joined(separator: " ")
            }
            texts.append("gateway " + change(text(old.gateways), text(new.gateways)))
        }
        if old.nameServerSentence != new.nameServerSentence {
            let text = { (path: NetworkPath) in
                path.resolvers.isEmpty
                    ? path.supportsDNS ? "configured" : "none" : path.resolvers.map(\.description).joined(separator: " ")
            }
            texts.append("DNS server " + change(text(old), text(new)))
        }
        for (before, after, name) in [
            (old.supportsIPv4, new.supportsIPv4, "IPv4"), (old.supportsIPv6, new.supportsIPv6, "IPv6"),
            (old.isExpensive, new.isExpensive, "expensive"),
            (old.isConstrained, new.isConstrained, "constrained"),
        ] where before != after {
            texts.append("\(after ? "+" : "-")\(name)")
        }
        return texts
    }
}
