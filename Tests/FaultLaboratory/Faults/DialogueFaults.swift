import NetworkLab

/// Faults of targets with a dialogue: servers of mail that misbehave.
extension Fault {
    private static let greeting = #"s.sendall(b'220 mail ESMTP\r\n'); s.recv(4096)"#
    private static let offer = #"s.sendall(b'250-mail\r\n250 STARTTLS\r\n'); s.recv(4096)"#
    private static let handshake =
        "s = context.wrap_socket(s, server_side=True, do_handshake_on_connect=False); s.do_handshake(); s.recv(4096)"
    private static let preset = LaboratoryAuthority.options + ["--set", "dialogue.preset=smtp"]

    /// A mail server that says these lines of Python, with a certificate for the handshake.
    private static func mail(
        _ name: String, _ lines: [String], names: [String] = serverNames, target: String = levelURL("dialogue"),
        expect expected: ExpectedVerdict
    ) -> Fault {
        .fromStart("mail server \(name)", target, expect: expected) { network in
            var server = ScriptedServer(lines.joined(separator: "; "))
            server.tls = (try LaboratoryAuthority(network).identity(names: names), "")
            try server.start(network)
        }
        .options(preset)
    }

    static let dialogueFaults: [Fault] = [
        mail(
            "works", [greeting, offer, #"s.sendall(b'220 go\r\n')"#, handshake, #"s.sendall(b'250 mail\r\n'); s.recv(4096)"#],
            target: family.target(family.server, levelPort), expect: .up(within: ExpectedVerdict.answered)),
        mail(
            "does not offer TLS", [greeting, #"s.sendall(b'250-mail\r\n250 SIZE 1000\r\n'); s.recv(4096)"#],
            expect: .down(
                "dialogue/starttls-refused", ["other_lines": "250-mail, 250 SIZE 1000"], within: ExpectedVerdict.answered)),
        mail(
            "refuses TLS", [greeting, offer, #"s.sendall(b'454 not now\r\n'); s.recv(4096)"#],
            expect: .down("dialogue/starttls-refused", within: ExpectedVerdict.answered)
        ).naming("454 not now"),
        mail(
            "closes the connection in place of a greeting", ["s.close()"],
            expect: .down("dialogue/unexpected-answer", ["closed": "1"], within: ExpectedVerdict.answered)),
        mail(
            "greets with an error", [#"s.sendall(b'554 no service\r\n'); s.recv(4096)"#],
            expect: .down("dialogue/unexpected-answer", within: ExpectedVerdict.answered)
        ).naming("554 no service"),
        mail(
            "says nothing", ["time.sleep(60)"],
            expect: .down("dialogue/timeout", ["steps": "0"], within: ExpectedVerdict.silent)),
        mail(
            "says nothing after the handshake", [greeting, offer, #"s.sendall(b'220 go\r\n')"#, handshake, "time.sleep(60)"],
            expect: .down("dialogue/timeout", ["steps": "7"], within: ExpectedVerdict.silent)),
        mail(
            "has the certificate of another", [greeting, offer, #"s.sendall(b'220 go\r\n')"#, handshake],
            names: ["DNS:other.example"], expect: .down("tls/hostname-mismatch", within: ExpectedVerdict.answered)),
        mail(
            "consents to TLS, and speaks no TLS",
            [greeting, offer, #"s.sendall(b'220 go\r\n'); s.recv(4096); s.sendall(b'what?\r\n')"#],
            expect: .down("tls/protocol-mismatch", within: ExpectedVerdict.answered)),
        .during(
            "dialogue: what is sent after the greeting vanishes", levelURL("dialogue"),
            prepare: { network in try ScriptedServer([greeting, offer, "time.sleep(60)"].joined(separator: "; ")).start(network)
            },
            expect: .unreachable("network/data-dropped", ["bytes_acknowledged": "0"], within: ExpectedVerdict.silent)
        ) { try $0.router.filter(.forward, "tcp dport \(levelPort) meta length > 60 drop") }
        .options([
            "--set", "dialogue.steps=expect: ^220", "--set", "dialogue.steps=send: HELO me", "--set",
            "dialogue.steps=expect: ^250",
        ]),
    ]
}
