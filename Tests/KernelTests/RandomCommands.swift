import Pacing

/// Draws random commands for `ip`, without the word `ip`. They concern two uplinks, a bridge, a macvlan and interfaces that are
/// added and removed beside them.
struct RandomCommands {
    private var draws: SplitMix64
    private let interfaces = ["u0", "u1", "br0", "mv0", "x0", "x1"]

    init(seed: UInt64) { draws = SplitMix64(seed: seed) }

    mutating func number(_ range: Range<Int>) -> Int {
        range.lowerBound + Int(draws.next() % UInt64(range.count))
    }

    mutating func one<Element>(of choices: [Element]) -> Element { choices[number(0..<choices.count)] }

    /// A command for `ip FAMILY`. About one in four fails because it refers to something missing.
    struct Command {
        var family: String
        var words: String
        /// True if the command runs on the router, at the other end of the cables.
        var isRouters = false
    }

    mutating func next() -> Command {
        switch number(0..<100) {
        case 0..<12: Command(family: "-4", words: "link set \(one(of: interfaces)) \(one(of: ["up", "up", "down"]))")
        case 12..<20:
            Command(family: "-4", words: "link set r\(one(of: ["u0", "u1"])) \(one(of: ["up", "up", "down"]))", isRouters: true)
        case 20..<28: linkChange()
        case 28..<45: address()
        case 45..<85: route()
        case 85..<93: rule()
        default: nexthop()
        }
    }

    /// Commands that restore one uplink and its default route, so that the path is satisfied often enough.
    mutating func repairs() -> [Command] {
        guard number(0..<3) > 0 else { return [] }
        return [
            Command(family: "-4", words: "link set ru0 up", isRouters: true),
            Command(family: "-4", words: "link set u0 up"),
            Command(family: "-4", words: "addr replace 10.0.0.1/24 dev u0"),
            Command(family: "-4", words: "rule flush"),
            Command(family: "-4", words: "rule add pref 32766 lookup main"),
            Command(family: "-4", words: "route del default via 10.0.0.9 dev u0 metric 0"),
            Command(family: "-4", words: "route prepend default via 10.0.0.9 dev u0 onlink"),
            Command(family: "-4", words: "link set ru1 up", isRouters: true),
            Command(family: "-4", words: "link set u1 up"),
            Command(family: "-4", words: "addr replace 10.1.0.1/24 dev u1"),
        ]
    }

    private mutating func linkChange() -> Command {
        let words = one(of: [
            "link add name x0 type veth peer name x1", "link add name x0 type veth peer name x1", "link del x0",
            "link set u1 master br0", "link set x1 master br0", "link set x1 nomaster", "link set u1 nomaster",
            "link set u1 nomaster", "link set u1 nomaster",
            "link add name mv0 link u0 type macvlan mode bridge", "link del mv0", "link add name br0 type bridge", "link del br0",
            "link set x0 name y0", "link set y0 name x0", "link set u0 mtu \(1400 + number(0..<3))", "link set x0 down",
        ])
        return Command(family: "-4", words: words)
    }

    private mutating func address() -> Command {
        let interface = one(of: interfaces)
        let verb = one(of: ["add", "add", "add", "replace", "del"])
        if number(0..<2) == 0 {
            let prefix = one(of: ["10.0.0.\(number(1..<4))/24", "10.1.0.\(number(1..<4))/24", "10.7.\(number(0..<2)).1/32"])
            return Command(family: "-4", words: "addr \(verb) \(prefix) dev \(interface)")
        }
        // The kernel announces no change of an address that is still checked for duplicates (inet6_addr_modify). Such addresses
        // are therefore only added and deleted.
        if number(0..<4) == 0 {
            let verb = verb == "replace" ? "add" : verb
            return Command(family: "-6", words: "addr \(verb) 2001:db8:\(number(0..<2))::3/64 dev \(interface)")
        }
        let options = verb == "del" ? "" : one(of: ["nodad", "nodad", "nodad preferred_lft 100 valid_lft 200"])
        return Command(
            family: "-6", words: "addr \(verb) 2001:db8:\(number(0..<2))::\(number(1..<3))/64 dev \(interface) \(options)")
    }

    private mutating func route() -> Command {
        let isV4 = number(0..<2) == 0
        let family = isV4 ? "-4" : "-6"
        if number(0..<40) == 0 { return Command(family: family, words: "route flush table \(one(of: ["77", "main"]))") }
        let verb = one(of: ["add", "add", "change", "append", "prepend", "replace", "replace", "del", "del"])
        let target =
            isV4
            ? one(of: ["default", "10.50.0.0/24", "10.51.0.0/16"])
            : one(of: ["default", "2001:db8:50::/64", "2001:db8:51::/48"])
        let table = one(of: ["", "", "", "table 77"])
        let routed = "\(table) \(one(of: ["", "metric 10", "metric 10", isV4 ? "metric 300" : ""]))"
        // The kernel loses IPv6 routes without a gateway that are stored between the members of a multipath route of the same
        // key. Its dumps, and its flush when a link goes down, skip to the last member. The two kinds therefore have different
        // keys here.
        let unrouted = isV4 ? routed : "\(table) \(one(of: ["metric 300", "metric 20", "metric 20"]))"
        let refusal = one(of: ["", "", "", "", "", "blackhole", "unreachable", "prohibit", "throw"])
        if refusal != "" {
            return Command(family: family, words: "route \(verb) \(refusal) \(target) \(unrouted) \(one(of: ["", "proto 99"]))")
        }
        let options = one(of: ["", "", "proto static", "mtu 1400", isV4 ? "tos 0x10" : "", "onlink"])
        switch number(0..<10) {
        case 0..<4: return Command(family: family, words: "route \(verb) \(target) \(routed) \(options) \(hop(isV4))")
        case 4..<6: return Command(family: family, words: "route \(verb) \(target) \(unrouted) dev \(one(of: interfaces))")
        case 6..<8:
            let hops = (0..<number(2..<4)).map { _ in "nexthop \(hop(isV4)) weight \(number(1..<3))" }
            return Command(family: family, words: "route \(verb) \(target) \(routed) \(hops.joined(separator: " "))")
        default: return Command(family: family, words: "route \(verb) \(target) \(unrouted) nhid \(number(1..<7))")
        }
    }

    private mutating func hop(_ isV4: Bool) -> String {
        let n = number(0..<2)
        let host = number(8..<11)
        if isV4 && number(0..<6) == 0 { return "via inet6 fe80::\(host) dev u\(n)" }
        return isV4
            ? "via 10.\(n).0.\(host) dev u\(n)" : "via \(one(of: ["fe80", "2001:db8:\(n)"]))::\(host) dev u\(n)"
    }

    private mutating func rule() -> Command {
        let family = one(of: ["-4", "-6"])
        let verb = one(of: ["add", "del"])
        let selector = one(of: [
            "from all", family == "-4" ? "not from 10.0.0.0/8" : "not from 2001:db8::/32", "fwmark 5/7", "uidrange 5000-6000",
            "iif u0", "oif x0", "ipproto tcp dport 25", "to \(family == "-4" ? "10.9.0.0/16" : "2001:db8:9::/48")",
        ])
        let action = one(of: ["lookup 77", "lookup 77", "lookup main suppress_prefixlength 0", "lookup 78", "prohibit"])
        // A rule that refuses all packets makes all paths unsatisfied, and is soon deleted again.
        return Command(family: family, words: "rule \(verb) pref \(100 + number(0..<4)) \(selector) \(action)")
    }

    private mutating func nexthop() -> Command {
        let id = number(1..<5)
        return one(of: [
            Command(family: "-4", words: "nexthop replace id \(id) via 10.0.0.\(8 + id) dev u0"),
            Command(family: "-4", words: "nexthop replace id \(id) via 10.1.0.\(8 + id) dev u1"),
            Command(family: "-6", words: "nexthop replace id 5 via fe80::5 dev u\(number(0..<2))"),
            Command(family: "-4", words: "nexthop replace id 6 group \(one(of: ["1/2", "1,3/2", "3/4,2", "1"]))"),
            Command(family: "-4", words: "nexthop del id \(number(1..<7))"),
        ])
    }
}
