import Foundation
import NetworkLab
import Reachability

/// The output of `ip -N -j` in the format of ``SnapshotRows``.
extension SnapshotRows {
    init(of host: LabHost) throws {
        self.init()
        func table(_ words: String) throws -> [[String: Any]] {
            let text = try host.ip("-N -j \(words)")
            let rows = try JSONSerialization.jsonObject(with: Data((text.isEmpty ? "[]" : text).utf8)) as? [[String: Any]]
            return (rows ?? []).filter { !$0.isEmpty }
        }
        for row in try table("-d link show") { links.insert(Self.link(row)) }
        for row in try table("addr show") { addresses.formUnion(Self.addresses(row)) }
        for row in try table("-4 route show table all") { routes.insert(Self.route(row, .v4)) }
        for row in try table("-6 route show table all") { routes.insert(Self.route(row, .v6)) }
        for row in try table("-4 rule show") { rules.insert(Self.rule(row, .v4)) }
        for row in try table("-6 rule show") { rules.insert(Self.rule(row, .v6)) }
        for row in try table("nexthop show") { nexthops.insert(Self.nexthop(row)) }
    }

    private static func link(_ row: [String: Any]) -> String {
        let flags = row["flags"] as? [String] ?? []
        let info = row["linkinfo"] as? [String: Any]
        let state = text(row, "operstate")?.lowercased()
        return words(
            "\(text(row, "ifindex") ?? "") \(text(row, "ifname") ?? "")", ("mtu", text(row, "mtu")),
            ("state", state == "lowerlayerdown" ? "lowerlayerdown" : state), ("up", flags.contains("UP") ? "yes" : nil),
            ("carrier", flags.contains("LOWER_UP") ? "yes" : nil), ("kind", info?["info_kind"] as? String),
            ("port", info?["info_slave_kind"] as? String), ("master", text(row, "master")),
            ("address", text(row, "address") ?? ""))
    }

    private static func addresses(_ row: [String: Any]) -> [String] {
        (row["addr_info"] as? [[String: Any]] ?? []).map { address in
            words(
                text(row, "ifname") ?? "", ("", "\(text(address, "local") ?? "")/\(text(address, "prefixlen") ?? "")"),
                ("peer", text(address, "address")), ("scope", text(address, "scope")),
                ("tentative", address["tentative"] == nil ? nil : "yes"),
                ("duplicate", address["dadfailed"] == nil ? nil : "yes"),
                ("deprecated", text(address, "preferred_life_time") == "0" ? "yes" : nil))
        }
    }

    private static func route(_ row: [String: Any], _ family: IPAddress.Family) -> String {
        let several = row["nexthops"] as? [[String: Any]]
        let flags = row["flags"] as? [String] ?? []
        let hops = (several ?? [row]).compactMap { hop -> String? in
            guard let device = text(hop, "dev") else { return nil }
            let via = (hop["via"] as? [String: Any]).flatMap { text($0, "host") }
            let own = several == nil ? flags : hop["flags"] as? [String] ?? []
            return words(
                device, ("via", text(hop, "gateway") ?? via), ("weight", several == nil ? nil : text(hop, "weight")),
                ("onlink", own.contains("onlink") ? "yes" : nil))
        }
        return words(
            prefix(text(row, "dst") ?? "default", family), ("table", text(row, "table") ?? "254"),
            ("metric", text(row, "metric") ?? "0"), ("from", text(row, "from").map { prefix($0, family) }),
            ("tos", number(row, "tos") ?? "0"), ("type", text(row, "type") ?? "1"), ("proto", text(row, "protocol") ?? "3"),
            ("scope", text(row, "scope") ?? "0"), ("src", text(row, "prefsrc")), ("nhid", text(row, "nhid")),
            ("to", hops.sorted().joined(separator: " + ")))
    }

    private static func rule(_ row: [String: Any], _ family: IPAddress.Family) -> String {
        func side(_ key: String) -> String? {
            guard let address = text(row, key), address != "all" else { return nil }
            return "\(address)/\(text(row, "\(key)len") ?? (family == .v4 ? "32" : "128"))"
        }
        func range(_ key: String) -> String? {
            if let only = text(row, key) { return "\(only)-\(only)" }
            return text(row, "\(key)_start").map { "\($0)-\(text(row, "\(key)_end") ?? "")" }
        }
        let mark = number(row, "fwmark").map { "\($0)/\(number(row, "fwmask") ?? "\(UInt32.max)")" }
        return words(
            "\(family) \(text(row, "priority") ?? "")", ("not", row["not"] == nil ? nil : "yes"), ("from", side("src")),
            ("to", side("dst")), ("iif", text(row, "iif")), ("oif", text(row, "oif")), ("mark", mark),
            ("tos", number(row, "tos")),
            ("uid", range("uid")), ("ipproto", text(row, "ipproto")?.replacing("ipproto-", with: "")), ("sport", range("sport")),
            ("dport", range("dport")), ("tun", text(row, "tun_id")), ("l3mdev", row["l3mdev"] == nil ? nil : "yes"),
            ("action", row["goto"] == nil ? text(row, "action") : "2"), ("goto", text(row, "goto")),
            ("table", text(row, "table")),
            ("suppress", text(row, "suppress_prefixlen")), ("group", text(row, "suppress_ifgroup")))
    }

    private static func nexthop(_ row: [String: Any]) -> String {
        let group = (row["group"] as? [[String: Any]])?.map { "\(text($0, "id") ?? "")*\(text($0, "weight") ?? "1")" }
        return words(
            text(row, "id") ?? "", ("dev", row["blackhole"] == nil ? text(row, "dev") : nil), ("via", text(row, "gateway")),
            ("onlink", (row["flags"] as? [String] ?? []).contains("onlink") ? "yes" : nil),
            ("blackhole", row["blackhole"] == nil ? nil : "yes"), ("group", group?.joined(separator: "+")))
    }

    private static func text(_ row: [String: Any], _ key: String) -> String? {
        row[key].map { "\($0)" }
    }

    /// Makes `0x10` and `16` equal.
    private static func number(_ row: [String: Any], _ key: String) -> String? {
        text(row, key).map { text in
            text.hasPrefix("0x") ? UInt64(text.dropFirst(2), radix: 16).map { "\($0)" } ?? text : text
        }
    }

    private static func prefix(_ text: String, _ family: IPAddress.Family) -> String {
        if text == "default" { return family == .v4 ? "0.0.0.0/0" : "::/0" }
        return text.contains("/") ? text : "\(text)/\(family == .v4 ? 32 : 128)"
    }
}
