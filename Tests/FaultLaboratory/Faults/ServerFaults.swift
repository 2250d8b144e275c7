import NetworkLab

extension Fault {
    static let serverFaults = forFamilies { family in
        let target = family.target(family.server)
        // The server's host answers datagrams to another port.
        let timeout = ExpectedVerdict.down("tcp/timeout", ["host": "answered"], within: ExpectedVerdict.silent)
        // Two counts must agree. `why` has only two, of which one may show nothing on a busy machine.
        func drop(_ place: String) -> ExpectedVerdict {
            .unreachable("firewall/local-drop", ["scope": "port", "place": place], within: ExpectedVerdict.silent)
        }
        return [
            .during("port closed, \(family.rawValue)", target, expect: .down("tcp/refused")) { $0.closeServer() },
            .during(
                "server drops the SYN, gateway alive, \(family.rawValue)", target,
                expect: timeout
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) drop") },
            .during(
                // Nobody else is behind the gateway, so its connection may be at fault.
                "server's host off, nobody reports it, gateway alive, \(family.rawValue)", target,
                expect: .unreachable("network/upstream-silent", ["first_hop": "answered"], within: ExpectedVerdict.silent)
            ) {
                try silenceReports($0.router)
                try $0.site.silence("s0")
            }
            .naming("a second target in another network would tell them apart"),
            .during(
                "this machine drops one TCP port, \(family.rawValue)", target,
                expect: drop("output")
            ) { try $0.client.filter(.output, "tcp dport \(FaultNetwork.port) drop") }
            .explained(.none),
            .during(
                "this machine drops the answers from one TCP port, \(family.rawValue)", target,
                expect: drop("input")
            ) { try $0.client.filter(.input, "tcp sport \(FaultNetwork.port) drop") }
            .explained(.none),
            .during(
                "server drops the SYN, gateway answers no questions, \(family.rawValue)", target,
                prepare: { try hideGateway($0, family) },
                // Nothing proves that the gateway is alive.
                expect: .unreachable("network/upstream-silent", ["first_hop": "unknown"], within: ExpectedVerdict.silent)
            ) { try hideServer($0) }
            // It asks the gateway further questions.
            .explained(.status("unreachable")),
            .during(
                "server drops the SYN, gateway answers no questions, a port behind it is closed, \(family.rawValue)", target,
                prepare: { try hideGateway($0, family) },
                expect: .down(
                    "tcp/timeout", ["witness": family.target(family.server, FaultNetwork.port + 1)],
                    within: ExpectedVerdict.silent)
            ) { try hideServer($0) }
            .beside(family.target(family.server, FaultNetwork.port + 1))
            // It asks about the one target only.
            .explained(.status("unreachable")),
            .during(
                "this machine drops all that arrives from the address, \(family.rawValue)", target,
                expect: drop("input")
            ) { try $0.client.filter(.input, "\(family.protocolName) saddr \(family.server) drop") }
            .explained(.none),
            .during(
                "this machine drops all TCP that arrives, \(family.rawValue)", target,
                expect: drop("input")
            ) { try $0.client.filter(.input, "meta l4proto tcp drop") }
            .explained(.none),
            // A queue that is full leaves the same evidence as a filter for the port, but nothing is dropped before it.
            .fromStart(
                "this machine's own server accepts no more connections, \(family.rawValue)", family.target(family.loopback),
                expect: .down("tcp/timeout", ["host": "answered"], within: ExpectedVerdict.silent)
            ) { try $0.hold($0.client.serve(.stuck, at: family.loopback, port: FaultNetwork.port)) },
            .during(
                "this machine drops one of its own TCP ports, \(family.rawValue)", family.target(family.client()),
                prepare: { try $0.hold($0.client.serve(port: FaultNetwork.port)) },
                expect: drop("input")
            ) { try $0.client.filter(.input, "tcp dport \(FaultNetwork.port) drop") }
            .explained(.none),
            .fromStart(
                "the target is \(family == .ipv4 ? "0.0.0.0" : "::")", family.target(family == .ipv4 ? "0.0.0.0" : "::"),
                expect: .unreachable("dns/unusable-address", within: ExpectedVerdict.atOnce)
            ) { try $0.hold($0.client.serve(port: FaultNetwork.port)) },
            .during(
                "ICMP from the server's own firewall, \(family.rawValue)", target,
                expect: .down("network/port-filtered", ["hop": family.server])
            ) { try $0.site.filter(.input, "tcp dport \(FaultNetwork.port) reject") },
        ]
    }
}

extension Fault {
    /// Makes the server answer neither at its port nor questions, and only at its other ports.
    private static func hideServer(_ network: FaultNetwork) throws {
        try network.site.filter(.input, "tcp dport { \(FaultNetwork.port), 33434 } drop", "udp dport 33434 drop")
    }

    /// Makes the gateway answer no questions. The client does not ask for its link-layer address again during the test.
    private static func hideGateway(_ network: FaultNetwork, _ family: FaultNetwork.Family) throws {
        try network.client.set("\(family == .ipv4 ? "ipv4" : "ipv6").neigh.v0.base_reachable_time_ms", "600000")
        try network.router.filter(.input, "meta l4proto { tcp, udp } th dport 33434 drop")
    }
}
