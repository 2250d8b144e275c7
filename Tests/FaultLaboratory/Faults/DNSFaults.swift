import NetworkLab

/// Faults of targets that are name servers. The laboratory has its own server (``NameServer``).
extension Fault {
    private static let dnsServer = FaultNetwork.nameServers[0]
    private static let dnsTarget = "dns://\(dnsServer)/\(FaultNetwork.name)"
    private static let dnsTargetOverTCP = "dns+tcp://\(dnsServer)/\(FaultNetwork.name)"
    private static let answer = FaultNetwork.Family.ipv4.server
    private static let answersWell = NameServer.Behavior.records([answer])

    /// A row with a server that has the fault before the program starts.
    private static func answering(
        _ name: String, of target: String = dnsTarget, _ behavior: NameServer.Behavior, expect expected: ExpectedVerdict,
        options: [String] = []
    ) -> Fault {
        Fault.fromStart("dns: \(name)", target, expect: expected) { try $0.resolver(behavior) }.options(options)
    }

    static let dnsFaults: [Fault] =
        dnsAnswers + [
            .during(
                "dns: server stops answering, its host is alive", dnsTarget, prepare: { try $0.resolver(answersWell) },
                expect: .down("dns/no-answer", ["host": "answered"], within: ExpectedVerdict.silent)
            ) { network in
                for server in network.held(NameServer.self) { server.setBehavior(.silent) }
            },
            .fromStart(
                "dns: no server at the port", dnsTarget,
                expect: .down("dns/resolver-refused", ["port": "53"], within: ExpectedVerdict.silent)
            ) { _ in },
            .during(
                "dns: server's host off, router reports it", dnsTarget, prepare: { try $0.resolver(answersWell) },
                expect: .unreachable(
                    "network/host-unreachable", ["hop": FaultNetwork.Family.ipv4.gateway()], within: ExpectedVerdict.silent)
            ) { try switchOff($0) },
            .during(
                "dns: server's host off, nobody reports it, gateway alive", dnsTarget, prepare: { try $0.resolver(answersWell) },
                expect: .unreachable("network/upstream-silent", ["first_hop": "answered"], within: ExpectedVerdict.silent)
            ) { network in
                try silenceReports(network.router)
                try network.site.silence("s0")
            },
            .during(
                "dns: this machine's packet filter rejects the questions", dnsTarget, prepare: { try $0.resolver(answersWell) },
                expect: .unreachable("firewall/local-reject", within: ExpectedVerdict.answered)
            ) { try $0.client.filter(.output, "udp dport 53 reject") },
            .fromStart(
                "dns: answer is truncated, TCP refused", dnsTarget,
                expect: .down("tcp/refused", ["port": "53"], within: ExpectedVerdict.answered)
            ) { try $0.resolver(.truncatedOnly) },
            .fromStart(
                "dns: server of DNS over TLS does not speak TLS", "dns+tls://\(dnsServer):53/\(FaultNetwork.name)",
                expect: .down("tls/handshake-refused", within: ExpectedVerdict.silent)
            ) { try $0.resolver(answersWell) },
        ]

    private static let dnsAnswers: [Fault] = [
        answering("server answers", answersWell, expect: .up(within: ExpectedVerdict.answered)),
        answering("server answers over TCP", of: dnsTargetOverTCP, answersWell, expect: .up(within: ExpectedVerdict.answered)),
        answering(
            "answer is truncated, and complete over TCP", .records((1...40).map { "198.51.100.\($0)" }),
            expect: .up(within: ExpectedVerdict.answered)),
        answering(
            "server answers SERVFAIL", .code(2),
            expect: .down("dns/unexpected-rcode", ["rcode": "SERVFAIL"], within: ExpectedVerdict.answered)),
        answering(
            "server answers NXDOMAIN", .code(3),
            expect: .down("dns/unexpected-rcode", ["rcode": "NXDOMAIN"], within: ExpectedVerdict.answered)),
        answering(
            "server answers NXDOMAIN, which is allowed", .code(3), expect: .up(within: ExpectedVerdict.answered),
            options: ["--set", "dns.rcodes=NXDOMAIN"]),
        answering(
            "server answers REFUSED over TCP", of: dnsTargetOverTCP, .code(5),
            expect: .down("dns/unexpected-rcode", ["rcode": "REFUSED"], within: ExpectedVerdict.answered)),
        answering(
            "server has another address", .records(["198.51.100.1"]),
            expect: .down(
                "dns/unexpected-answer", ["expectation": answer, "section": "answer"], within: ExpectedVerdict.answered),
            options: ["--set", "dns.answer=\(answer)"]),
        answering(
            "answer is damaged", .damaged, expect: .down("dns/unexpected-answer", within: ExpectedVerdict.answered)),
        answering(
            "answers of another number are silence", .wrongID(answer),
            expect: .down("dns/no-answer", within: ExpectedVerdict.silent)),
        answering(
            "answers to another question are silence", .wrongQuestion(answer),
            expect: .down("dns/no-answer", within: ExpectedVerdict.silent)),
    ]
}
