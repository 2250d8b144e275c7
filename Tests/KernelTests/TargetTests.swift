import Expectations
import Foundation
import NetworkLab
import Reachability
import Testing

/// The program's status of targets, with the kernel's own routes, neighbors and packet filter.
@Suite(.requiresNamespaces)
struct TargetTests {
    /// A network with an uplink whose router has no server. Missing neighbors fail after a moment.
    private func network() throws -> Network {
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.router.ip("addr add 10.1.0.254/24 dev rv0")
        try network.router.ip("addr add 2001:db8:1::fe/64 dev rv0 nodad")
        for table in ["arp_cache", "ndisc_cache"] { try network.host.ip("ntable change name \(table) dev v0 retrans 50") }
        return network
    }

    /// Runs one status. - Returns: for each target `STATUS LAYER/CODE by INTERFACE`, and the cause's detail.
    private func status(_ network: Network, _ targets: [String], in sandbox: Sandbox? = nil) throws -> [(
        line: String, detail: String
    )] {
        let start = {
            let words = [try Programs.netwatch, "status", "--json", "--netns", network.host.path]
            return try Program(words + targets, output: .file)
        }
        let program = try sandbox.map { try $0.perform(start) } ?? start()
        _ = try program.wait(within: patience)
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        let records = try #require(document?["targets"] as? [[String: Any]], "\(program.output)\(program.standardError)")
        return records.map { record in
            let cause = record["cause"] as? [String: Any]
            func text(_ key: String, of object: [String: Any]?) -> String? { object?[key] as? String }
            let code = text("layer", of: cause).map { " \($0)/\(text("code", of: cause) ?? "")" } ?? ""
            let interface = text("interface", of: record).map { " by \($0)" } ?? ""
            return ("\(text("status", of: record) ?? "")\(code)\(interface)", text("detail", of: cause) ?? "")
        }
    }

    private func reject(_ host: LabHost, _ family: String, _ word: String) throws {
        try host.run(
            "nft", "-f", "-",
            input: "table \(family) t { chain c { type filter hook output priority 0; tcp dport 9 reject with \(word)\n }\n }\n")
    }

    @Test(arguments: [
        ("ip", "icmp host-unreachable", "10.1.0.254:9"), ("ip", "icmp net-unreachable", "10.1.0.254:9"),
        ("ip6", "icmpv6 addr-unreachable", "[2001:db8:1::fe]:9"),
    ])
    func `a local firewall that rejects with host unreachable does not accuse the neighbor`(
        family: String, word: String, target: String
    ) throws {
        let network = try network()
        try reject(network.host, family, word)
        // The result is the same before and after the neighbor has answered.
        try expectEqual(status(network, [target]).map(\.line), ["unreachable firewall/local-reject by v0"])
        try expectEqual(status(network, [target.replacing(":9", with: ":10")]).map(\.line), ["down tcp/refused by v0"])
        try expectEqual(status(network, [target]).map(\.line), ["unreachable firewall/local-reject by v0"])
    }

    @Test(arguments: [nil, .netlink] as [Sandbox?])
    func `a target that is missing on its link is a silent host`(sandbox: Sandbox?)
        throws
    {
        let network = try network()
        try expectEqual(
            status(network, ["10.1.0.99:80", "[2001:db8:1::99]:80"], in: sandbox).map(\.line),
            ["unreachable neighbor/host-silent by v0", "unreachable neighbor/host-silent by v0"])
    }

    @Test(arguments: [Sandbox.ipv4, .connections])
    func `a sandbox that refuses sockets or connections is no fault of a route`(sandbox: Sandbox) throws {
        let network = try network()
        let found = try status(network, ["10.1.0.254:80"], in: sandbox)
        #expect(found.first?.line.hasPrefix("unreachable local/not-permitted") == true, "\(found)")
    }

    // The kernel then chooses the gateway by the sender's port, which is unknown before the packet is sent.
    @Test func `with two gateways the silent one is the cause, whichever a packet takes`() throws {
        let network = try network()
        try network.uplink("v1", "10.2.0.1/24")
        try network.host.ip("ntable change name arp_cache dev v1 retrans 50")
        try network.host.set("ipv4.fib_multipath_hash_policy", "1")
        try network.host.ip("route add default nexthop via 10.1.0.254 nexthop via 10.2.0.254")
        try network.router.ip("route add 10.2.0.0/24 via 10.1.0.1")
        for filter in ["all", "rv0", "rv1"] { try network.router.set("ipv4.conf.\(filter).rp_filter", "0") }
        let servers = (1...16).map { "192.0.2.\($0)" }
        try network.router.ip("link set lo up")
        for server in servers { try network.router.ip("addr add \(server)/32 dev lo") }
        let seen = try status(network, servers.map { "\($0):9" }).map { $0.line.split(separator: " by ")[0] }
        #expect(Set(seen).isSubset(of: ["down tcp/refused", "unreachable neighbor/gateway-silent"]), "\(seen)")
    }

    @Test func `a router's single ICMP error stays the cause while the router drops further packets`() throws {
        let network = try network()
        try network.host.ip("route add default via 10.1.0.254")
        // Packets leave by another interface: a router that sends them back where they came from redirects first.
        try network.uplink("v1")
        try network.router.ip("route add default dev rv1")
        try network.router.set("ipv4.ip_forward", "1")
        try network.router.run(
            "nft", "-f", "-",
            input: """
                table ip t { chain c { type filter hook forward priority 0
                limit rate 1/hour burst 1 packets reject with icmp host-unreachable
                drop
                }
                }

                """)
        let observer = try ProgramObserver(
            watching: network.host.path,
            ["--interval", "1s", "--probe-timeout", "1s", "--count", "8", "-v", "192.0.2.1:80"])
        var targets: [String] = []
        var probes: [String] = []
        while let record = try observer.nextRecord() {
            let cause = record["cause"] as? [String: Any]
            let code = cause?["code"] as? String ?? "none"
            let isEarlier = (cause?["evidence"] as? [String: Any])?["earlier"] as? Bool == true
            let isPending = record["pending"] as? Bool == true
            if record["type"] as? String == "target", !isPending {
                targets.append("\(record["status"] as? String ?? "") \(code)")
            }
            if record["type"] as? String == "probe" { probes.append(isEarlier ? "earlier \(code)" : code) }
        }
        expectEqual(targets, ["unknown none", "unreachable host-unreachable"])
        #expect(probes.first == "host-unreachable" && probes.count > 2, "\(probes)")
        #expect(probes.dropFirst().allSatisfy { $0 == "earlier host-unreachable" }, "\(probes)")
    }

    @Test func `a multicast, broadcast or unspecified target is unreachable, and the detail says why`() throws {
        let network = try network()
        try network.host.ip("route add default via 10.1.0.254")
        let seen = try status(network, ["224.0.0.1:80", "10.1.0.255:80", "255.255.255.255:80", "[ff02::1]:80"])
        #expect(seen.allSatisfy { $0.line == "unreachable route/no-route" }, "\(seen.map(\.line))")
        let words = ["multicast", "broadcast", "broadcast", "multicast"]
        #expect(zip(seen, words).allSatisfy { $0.detail.contains("is a \($1) address") })
        // Linux takes 0.0.0.0 for this machine, and would connect to its servers.
        let unspecified = try status(network, ["0.0.0.0:80", "[::]:80"])
        #expect(unspecified.allSatisfy { $0.line == "unreachable dns/unusable-address" }, "\(unspecified.map(\.line))")
        #expect(unspecified.allSatisfy { $0.detail.contains("the unspecified address") })
    }

    @Test(arguments: ["-4", "-6"])
    func `a rule for a destination port routes its target over its own uplink`(family: String) throws {
        let network = try network()
        try network.uplink("v1", "10.2.0.1/24", "2001:db8:2::1/64")
        try network.router.ip("addr add 10.2.0.254/24 dev rv1")
        try network.router.ip("addr add 2001:db8:2::fe/64 dev rv1 nodad")
        let (first, second) = family == "-4" ? ("10.1.0.254", "10.2.0.254") : ("2001:db8:1::fe", "2001:db8:2::fe")
        try network.host.ip("\(family) route add default via \(first)")
        try network.host.ip("\(family) route add default via \(second) table 100")
        try network.host.ip("\(family) rule add pref 100 ipproto tcp dport 8443 lookup 100")
        // A rule for another protocol does not apply to TCP.
        try network.host.ip("\(family) rule add pref 101 ipproto udp dport 443 lookup 100")
        let server = family == "-4" ? "192.0.2.1" : "2001:db8:9::1"
        try network.router.ip("link set lo up")
        try network.router.ip("addr add \(server) dev lo")
        let name = family == "-4" ? server : "[\(server)]"
        try expectEqual(
            status(network, ["\(name):443", "\(name):8443"]).map(\.line),
            ["down tcp/refused by v0", "down tcp/refused by v1"])
    }

    // MARK: Connections of a socket to itself

    /// A host in which each TCP connection to its own port 40002 has that port on both sides.
    private func hostThatMeetsItself() throws -> LabHost {
        let host = try Lab().host(loopback: true)
        try host.ip("addr add 10.1.0.1/32 dev lo")
        try host.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=40002 40002")
        return host
    }

    @Test(arguments: ["127.0.0.1", "[::1]", "10.1.0.1"])
    func `a closed port that the kernel chooses for the socket too is refused`(address: String) throws {
        let host = try hostThatMeetsItself()
        let program = try Program(
            [Programs.netwatch, "status", "--json", "--netns", host.path, "\(address):40002"], output: .file)
        try expectEqual(program.wait(within: patience), 1)
        #expect(
            program.output.contains(#""code":"refused""#) && program.output.contains(#""status":"down""#), "\(program.output)")
    }

    @Test(arguments: ["tls", "http"]) func `nothing is sent over a socket that is connected to itself`(scheme: String) throws {
        let host = try hostThatMeetsItself()
        let target = "\(scheme)://127.0.0.1:40002"
        let program = try Program([Programs.netwatch, "status", "--json", "--netns", host.path, target], output: .file)
        try expectEqual(program.wait(within: patience), 1)
        #expect(program.output.contains(#""code":"refused""#), "\(program.output)")
    }

    @Test func `wait does not start its command because its own socket answers`() throws {
        let host = try hostThatMeetsItself()
        let program = try Program([
            Programs.netwatch, "wait", "--netns", host.path, "--interval", "100ms", "--timeout", "1s", "127.0.0.1:40002", "--",
            "echo",
            "started",
        ])
        try expectEqual(program.wait(within: patience), 124, "\(program.ending)")
        try expectNil(program.nextLine())
    }
}
