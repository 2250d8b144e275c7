import Expectations
import Foundation
import NetworkLab
import Testing

/// Targets whose packets have a source address or a mark, on a machine with two uplinks and policy rules. The default route leads over the first
/// uplink, whose gateway is missing; packets from the address of the second one, or with the mark 7, take the second one.
@Suite(.requiresNamespaces) struct PolicyRoutingTests {
    /// The addresses of one family.
    enum Family: String, CaseIterable {
        case v4 = "-4"
        case v6 = "-6"

        var server: String { self == .v4 ? "192.0.2.9" : "2001:db8:9::9" }
        /// The address of the second uplink.
        var own: String { self == .v4 ? "10.2.0.1" : "2001:db8:2::1" }
        /// An address of the second uplink that is missing at first.
        var further: String { self == .v4 ? "10.2.0.7" : "2001:db8:2::7" }
        var prefix: String { self == .v4 ? "24" : "64 nodad" }
        var host: String { self == .v4 ? server : "[\(server)]" }
    }

    private func network() throws -> Network {
        let network = try Network()
        let (host, router) = (network.host, network.router)
        try host.ip("link set lo up")
        try router.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24", "2001:db8:1::1/64")
        try network.uplink("v1", "10.2.0.1/24", "2001:db8:2::1/64")
        // A strict filter drops the answers to marked packets, whose mark they lack.
        for filter in ["all", "v0", "v1"] { try host.set("ipv4.conf.\(filter).rp_filter", "0") }
        for table in ["arp_cache", "ndisc_cache"] { try host.ip("ntable change name \(table) dev v0 retrans 50") }
        try router.ipBatch([
            "addr add 10.2.0.254/24 dev rv1", "addr add 2001:db8:2::fe/64 dev rv1 nodad", "addr add 192.0.2.9/32 dev lo",
            "addr add 2001:db8:9::9/128 dev lo nodad", "addr add fe80::fe/64 dev rv1 nodad",
        ])
        // Without a link-local address the router could not ask for the host on behalf of the server's address, and would be silent when its
        // neighbor entry has expired.
        try host.ip("addr add fe80::1/64 dev v1 nodad")
        try host.ipBatch([
            "route add default via 10.1.0.254", "route add default via 2001:db8:1::fe",
            "route add default via 10.2.0.254 table 100", "route add default via 2001:db8:2::fe table 100",
        ])
        for family in Family.allCases {
            try host.ip("\(family.rawValue) rule add fwmark 7 lookup 100")
            for source in [family.own, family.further] { try host.ip("\(family.rawValue) rule add from \(source) lookup 100") }
        }
        return network
    }

    /// Runs one status. - Returns: `STATUS LAYER/CODE by INTERFACE`, and the cause.
    private func status(
        _ network: Network, _ target: String, _ options: [String], in sandbox: Sandbox? = nil
    ) throws -> (line: String, cause: [String: Any]) {
        let start = {
            try Program(
                [Programs.netwatch, "status", "--json", "--netns", network.host.path] + options + [target], output: .file)
        }
        let program = try sandbox.map { try $0.perform(start) } ?? start()
        _ = try program.wait(within: patience)
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        let record = try #require(
            (document?["targets"] as? [[String: Any]])?.first, "\(program.output)\(program.standardError)")
        let cause = record["cause"] as? [String: Any] ?? [:]
        let code = (cause["layer"] as? String).map { " \($0)/\(cause["code"] as? String ?? "")" } ?? ""
        let interface = (record["interface"] as? String).map { " by \($0)" } ?? ""
        return ("\(record["status"] as? String ?? "")\(code)\(interface)", cause)
    }

    @Test(arguments: Family.allCases)
    func `a rule for the source address or the mark decides over which uplink a target is reached`(family: Family) throws {
        let network = try network()
        let server = try network.router.serve(port: 8080)
        let target = "\(family.host):8080"
        for (options, expected) in [
            ([], "unreachable neighbor/gateway-silent by v0"), (["--source-address", family.own], "up by v1"),
            (["--mark", "7"], "up by v1"), (["--mark", "0x7", "--source-address", family.own], "up by v1"),
            (["--mark", "8"], "unreachable neighbor/gateway-silent by v0"),
        ] {
            let (line, cause) = try status(network, target, options)
            expectEqual(line, expected, "\(options): \(cause)")
        }
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Family.allCases)
    func `datagrams, pings and requests of HTTP have the source address and the mark too`(family: Family) throws {
        let network = try network()
        let names = try NameServer(.records([family.server]), in: network.router.path, address: family.server)
        // It accepts the connection, and says nothing.
        let web = try network.router.serve(port: 8080)
        let targets = [
            ("ping://\(family.host)", "up by v1"), ("dns://\(family.host)/server.example", "up by v1"),
            ("http://\(family.host):8080/", "down http/timeout by v1"),
        ]
        for (target, expected) in targets {
            let unmarked = try status(network, target, []).line
            #expect(unmarked.hasPrefix("unreachable ") && unmarked.hasSuffix(" by v0"), "\(target): \(unmarked)")
            for options in [["--source-address", family.own], ["--mark", "7"]] {
                try expectEqual(status(network, target, options).line, expected, "\(target) \(options)")
            }
        }
        withExtendedLifetime((names, web)) {}
    }

    @Test(arguments: Family.allCases)
    func `the host of a silent target is asked over the uplink of its packets`(family: Family) throws {
        let network = try network()
        try network.router.filter(.input, "tcp dport 8080 drop")
        for options in [["--source-address", family.own], ["--mark", "7"]] {
            let (line, cause) = try status(network, "\(family.host):8080", options)
            expectEqual(line, "down tcp/timeout by v1", "\(options)")
            expectEqual((cause["evidence"] as? [String: Any])?["host"] as? String, "answered")
        }
    }

    @Test func `without netlink, the source address still decides`() throws {
        let network = try network()
        let server = try network.router.serve(port: 8080)
        try expectEqual(
            status(network, "192.0.2.9:8080", ["--source-address", Family.v4.own], in: .netlink).line, "up by v1")
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Family.allCases)
    func `an unreachable route of the table of a rule is the cause, with the source address and the mark`(family: Family) throws {
        let network = try network()
        try network.host.ip("\(family.rawValue) route flush table 100")
        try network.host.ip("\(family.rawValue) route add unreachable default table 100")
        for options in [["--source-address", family.own], ["--mark", "7"]] {
            let (line, cause) = try status(network, "\(family.host):8080", options)
            expectEqual(line, "unreachable route/route-unreachable")
            let evidence = cause["evidence"] as? [String: Any] ?? [:]
            expectEqual(evidence["source_address"] as? String, options[0] == "--mark" ? nil : family.own)
            expectEqual(evidence["mark"] as? String, options[0] == "--mark" ? "0x7" : nil)
        }
    }

    @Test(arguments: Family.allCases)
    func `a target follows its source address, which is removed and added again`(family: Family) throws {
        let network = try network()
        let server = try network.router.serve(port: 8080)
        let target = "\(family.host):8080"
        // The interval is longer than the test: the changes alone lead to the probes.
        let observer = try ProgramObserver(
            watching: network.host.path, ["--source-address", family.further, "--interval", "1h", target])
        var seen: [String] = []
        func next(_ status: String) throws {
            while let record = try observer.nextRecord() {
                guard record["type"] as? String == "target", let found = record["status"] as? String else { continue }
                let cause = record["cause"] as? [String: Any]
                let code = (cause?["layer"] as? String).map { " \($0)/\(cause?["code"] as? String ?? "")" } ?? ""
                if seen.last != found + code { seen.append(found + code) }
                if found == status { return }
            }
            throw LabError("the program ended")
        }
        try next("unreachable")
        try network.host.ip("addr add \(family.further)/\(family.prefix) dev v1")
        try next("up")
        try network.host.ip("addr del \(family.further)/\(family.prefix.prefix(2)) dev v1")
        try next("unreachable")
        try network.host.ip("addr add \(family.further)/\(family.prefix) dev v1")
        try next("up")
        expectEqual(
            seen.filter { $0 != "unknown" }, ["unreachable address/no-address", "up", "unreachable address/no-address", "up"])
        withExtendedLifetime(server) {}
    }

    @Test(arguments: ["10.2.0.1:8080", "ping://10.2.0.1", "dns://10.2.0.1/a.example", "https://10.2.0.1/"])
    func `a mark needs a capability, and nothing is sent without it`(target: String) throws {
        let network = try network()
        let etc = try EtcDirectory(nameServers: [])
        try network.host.set("ipv4.ping_group_range", "0 2147483647")
        let program = try Program(
            unprivileged: [Programs.netwatch, "status", "--json", "--mark", "7", target], on: network.host, etc: etc,
            output: .file)
        _ = try program.wait(within: patience)
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        let cause = (document?["targets"] as? [[String: Any]])?.first?["cause"] as? [String: Any]
        expectEqual(cause?["layer"] as? String, "local", "\(program.output)\(program.standardError)")
        expectEqual(cause?["code"] as? String, "not-permitted")
        let detail = cause?["detail"] as? String ?? ""
        #expect(detail.contains("the mark 0x7") && detail.contains("CAP_NET_ADMIN"), "\(detail)")
    }
}
