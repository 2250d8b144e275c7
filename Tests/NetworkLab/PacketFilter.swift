extension LabHost {
    /// A place in the packet filter where rules apply.
    public enum FilterHook: String, Sendable {
        /// Packets for this host.
        case input
        /// Packets that this host sends.
        case output
        /// Packets that this host forwards.
        case forward
    }

    /// Adds rules of nft(8) for packets of both families: `host.filter(.output, "udp dport 53 drop")`.
    public func filter(_ hook: FilterHook, _ rules: String...) throws {
        try load("inet", "type filter hook \(hook.rawValue) priority 0", rules)
    }

    /// Directs connections of this host to one of its own servers: `host.redirect("ip daddr 203.0.113.99 tcp dport 80 redirect")`.
    public func redirect(_ rules: String...) throws {
        try load("inet", "type nat hook output priority -100", rules)
    }

    /// Directs connections that arrive at this host to one of its own servers, as a captive portal's router does:
    /// `host.redirectArrivals("tcp dport 443 redirect to :8443")`.
    public func redirectArrivals(_ rules: String...) throws {
        try load("inet", "type nat hook prerouting priority -100", rules)
    }

    /// Adds rules for all that arrives on an interface, ARP included, before this host sees it.
    public func filterArrivals(on interface: String, _ rules: String...) throws {
        try load("netdev", "type filter hook ingress device \(interface) priority 0", rules)
    }

    /// Drops all packets of an interface in both directions, as if this host were switched off. The link keeps its carrier.
    public func silence(_ interface: String) throws {
        for hook in ["ingress", "egress"] {
            try load("netdev", "type filter hook \(hook) device \(interface) priority 0", ["drop"])
        }
    }

    /// Removes all rules.
    public func removeFilters() throws {
        try run("nft", "flush", "ruleset")
    }

    private func load(_ family: String, _ place: String, _ rules: [String]) throws {
        let chain = "c\(place.utf8.reduce(UInt32(5381)) { $0 &* 33 &+ UInt32($1) })"
        try run(
            "nft", "-f", "-",
            input: "table \(family) lab {\nchain \(chain) {\n\(place);\n\(rules.joined(separator: "\n"))\n}\n}\n")
    }
}
