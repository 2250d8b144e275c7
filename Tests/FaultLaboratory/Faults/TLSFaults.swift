import Glibc
import MemoryCertificates
import NetworkLab

/// Faults of TLS: the connection is established, and the bytes of the server's handshake decide.
extension Fault {
    /// The rows of TLS.
    package static let tlsFaults: [Fault] =
        silentHandshakes + protocolFaults + refusals + certificateFaults + stapledResponses
        + pathsOfTLS

    private static let silentHandshakes: [Fault] = [
        .fromStart(
            "server accepts, never speaks TLS", levelURL("tls", FaultNetwork.port),
            expect: .down("tls/handshake-stalled", within: ExpectedVerdict.silent)
        ) { _ in },
        spoken(
            "sends one TLS byte a second", "tls",
            "[(s.sendall(bytes([b])), time.sleep(1)) for b in b'\\x16\\x03\\x03\\x00\\x7a\\x02']",
            .down("tls/handshake-timeout", within: ExpectedVerdict.silent)),
        .during(
            "server process stopped (SIGSTOP)", levelURL("tls"),
            prepare: { try ScriptedServer(try LaboratoryAuthority($0).identity()).start($0) },
            expect: .down("tls/handshake-stalled", within: ExpectedVerdict.silent)
        ) { network in
            // The kernel still completes the connections, and keeps them in the queue of the socket.
            for server in network.held(Program.self) { try server.signal(SIGSTOP) }
        }
        .options(LaboratoryAuthority.options).beside(working: family.target(family.server, levelPort)),
    ]

    private static let protocolFaults: [Fault] = [
        spoken(
            "speaks SSH instead of TLS", "tls", "s.sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n'); time.sleep(60)",
            .down("tls/protocol-mismatch", ["first_bytes": "SSH-2.0-OpenSSH_9.2\\r\\n"])),
        spoken(
            "speaks HTTP instead of TLS", "tls", "s.recv(4096); s.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n')",
            .down("tls/protocol-mismatch", ["first_bytes": "HTTP/1.1 400 Bad Request\\r\\n\\r\\n"])),
        spoken(
            "speaks SMTP instead of TLS", "tls", "s.sendall(b'220 mail.example ESMTP\\r\\n'); time.sleep(60)",
            .down("tls/protocol-mismatch", ["first_bytes": "220 mail.example ESMTP\\r\\n"])),
        spoken(
            "sends the client's bytes back", "tls", "[s.sendall(s.recv(4096)) for _ in range(2)]", .down("tls/protocol-mismatch")),
        tls(
            "supports TLS 1.1 only", .down("tls/protocol-mismatch", ["alert": "70 protocol version"]), isShown: false,
            settings: """
                context.set_ciphers('ALL:@SECLEVEL=0')
                context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
                """),
    ]

    private static let refusals: [Fault] = [
        spoken("closes on the hello", "tls", "s.recv(4096)", .down("tls/handshake-refused", ["closed": "1"])),
        spoken("resets on the hello", "tls", "s.recv(1); \(reset)", .down("tls/handshake-refused", ["reset": "1"])),
        tls(
            "has no cipher in common with the client",
            .down("tls/handshake-refused", ["alert": "40 handshake failure"]), isShown: false,
            settings: """
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                context.set_ciphers('ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0')
                """),
        tls(
            "has no certificate for the name (alert 112)",
            .down("tls/handshake-refused", ["alert": "112 unrecognized name"]), isShown: false,
            settings: "context.sni_callback = lambda s, name, c: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME"),
        tls(
            "demands a client certificate, TLS 1.2",
            .down("tls/client-certificate-required", ["alert": "40 handshake failure"]),
            settings: "context.maximum_version = ssl.TLSVersion.TLSv1_2; context.verify_mode = ssl.CERT_REQUIRED"),
        tls(
            "demands a client certificate, TLS 1.3",
            .down("tls/client-certificate-required", ["alert": "116 certificate required"]),
            settings: "context.minimum_version = ssl.TLSVersion.TLSv1_3; context.verify_mode = ssl.CERT_REQUIRED"),
    ]

    private static let certificateFaults: [Fault] = [
        certificate("expired", "tls/certificate-expired", ["10 certificate has expired"]) {
            try LaboratoryAuthority($0).identity(days: -40 ... -10)
        },
        certificate("not yet valid", "tls/certificate-not-yet-valid", ["9 certificate is not yet valid"]) {
            try LaboratoryAuthority($0).identity(days: 3...40)
        },
        certificate("for other names", "tls/hostname-mismatch", ["64 IP address mismatch"]) {
            try LaboratoryAuthority($0).identity(names: otherNames)
        }
        .naming("www.other.example and 203.0.113.77"),
        certificate(
            "for other names, and expired", "tls/hostname-mismatch", ["10 certificate has expired", "64 IP address mismatch"]
        ) { try LaboratoryAuthority($0).identity(names: otherNames, days: -40 ... -10) },
        certificate(
            "of an unknown authority, for other names, and expired", "tls/certificate-untrusted",
            ["19 self-signed certificate in certificate chain (depth 1)", "10 certificate has expired", "64 IP address mismatch"]
        ) { network in
            _ = try LaboratoryAuthority(network)
            return try LaboratoryAuthority.unknownIdentity(names: otherNames, days: -40 ... -10)
        },
        certificate("of an unknown authority", "tls/certificate-untrusted") { network in
            _ = try LaboratoryAuthority(network)
            return try LaboratoryAuthority.unknownIdentity()
        },
        certificate("without the intermediate certificate", "tls/certificate-untrusted") {
            try LaboratoryAuthority($0).identity(sendsIntermediate: false)
        }
        .naming("without the intermediate certificate of the issuer CN=Laboratory Intermediate"),
        certificate("revoked, revocation list given", "tls/certificate-revoked", ["23 certificate revoked"]) {
            try LaboratoryAuthority($0).identity(isRevoked: true)
        }
        .options(LaboratoryAuthority.optionsWithRevocations),
        certificate(
            "of a revoked authority, which is trusted itself", "tls/certificate-revoked", ["23 certificate revoked (depth 1)"]
        ) { try LaboratoryAuthority($0).identityOfRevokedAuthority() }
        .options(LaboratoryAuthority.optionsWithRevocations).naming("CN=Laboratory Intermediate, which its issuer has revoked"),
        certificate("with a key that costs its verifier much", "tls/excessive-cost", within: ExpectedVerdict.costly) {
            try LaboratoryAuthority($0).identityWithCostlyKey()
        }
        .naming("an RSA key whose exponent has 3071 bits"),
    ]

    private static let stapledResponses: [Fault] = [
        stapled("its issuer says that it is revoked", .revoked, says: .issuer, "revoked", signer: "CN=Laboratory Intermediate"),
        stapled("a responder says that it is revoked", .revoked, says: .delegate, "revoked", signer: "CN=Laboratory Responder"),
        stapled("its issuer says that it is good", .good, says: .issuer, "good", signer: "CN=Laboratory Intermediate"),
        stapled(
            "its issuer said until yesterday that it is revoked", .revoked, says: .issuer, hours: -96 ... -24, "stale",
            signer: "CN=Laboratory Intermediate"),
        stapled("a stranger says that it is revoked", .revoked, says: .stranger, "unverified"),
    ]

    /// A server that staples a response to its certificate. Only a response that counts makes it `down`.
    private static func stapled(
        _ name: String, _ status: MemoryCertificate.OCSPStatus, says responder: LaboratoryAuthority.Responder,
        hours: ClosedRange<Int> = -1...24, _ result: String, signer: String? = nil
    ) -> Fault {
        var evidence = ["stapled": result]
        evidence["stapled_signer"] = signer
        let isRevoked = result == "revoked"
        if isRevoked { evidence["revocation_reason"] = "keyCompromise" }
        let expected: ExpectedVerdict =
            isRevoked ? .down("tls/certificate-revoked", evidence) : .up(within: ExpectedVerdict.answered)
        let fault = Fault.fromStart("certificate of which \(name), stapled", levelURL("tls"), expect: expected) { network in
            let (identity, response) = try LaboratoryAuthority(network).identity(status, says: responder, hours: hours)
            try StaplingServer(identity: identity, response: response).start(network)
        }
        .options(LaboratoryAuthority.options).showingOfTLS(evidence)
        return isRevoked ? fault.showingCertificate().naming("as its stapled response says") : fault
    }

    private static let pathsOfTLS: [Fault] = [
        .fromStart(
            "large packets vanish, without a report", levelURL("tls"),
            expect: .unreachable(
                "network/packet-too-big", ["inferred": "TCP_MAXSEG 536"], within: ExpectedVerdict.silent)
        ) { network in
            // 60 names make the certificate longer than a segment.
            let names = serverNames + (1...60).map { "DNS:host-\($0).server.example" }
            try ScriptedServer(try LaboratoryAuthority(network).identity(names: names)).start(network)
            try network.router.filter(.forward, "iifname rs0 meta length > 1400 drop")
        }
        .options(LaboratoryAuthority.options).seenByStatus(),
        dataVanish("tls"), dataVanish("https"),
        .during(
            "a path of 1.1 s for each round trip, https", levelURL("https"),
            prepare: { network in
                try network.addTunnel()
                try ScriptedServer(try LaboratoryAuthority(network).identity(), ScriptedServer.answer).start(network)
            },
            expect: .degraded("quality/latency", ["address": family.server], within: .seconds(12))
        ) { try $0.tunnel.delay(by: .milliseconds(550)) }
        .options(LaboratoryAuthority.options).withTun().naming("a round trip takes 1.1 s").explained(.status("degraded"))
        .seenByStatus(),
        .during(
            "a captive portal takes over port 443 (DNAT)", "tls://\(family.server)",
            prepare: { network in
                let authority = try LaboratoryAuthority(network)
                try ScriptedServer(try authority.identity()).start(network, port: 443)
                try ScriptedServer(try authority.identity(names: ["DNS:login.portal.example"]))
                    .start(network, on: network.router, port: levelPort)
            },
            expect: .down("tls/hostname-mismatch", ["names": "login.portal.example"])
        ) { try $0.router.redirectArrivals("ip daddr \(family.server) tcp dport 443 redirect to :\(levelPort)") }
        .options(LaboratoryAuthority.options).beside(working: family.target(family.server, 443))
        .showingCertificate().naming("login.portal.example"),
    ]

    /// A filter on the way passes the handshake of TCP, and drops what the client sends afterwards.
    private static func dataVanish(_ scheme: String) -> Fault {
        .during(
            "data vanish after the handshake of TCP, \(scheme)", levelURL(scheme),
            prepare: { network in
                try ScriptedServer(try LaboratoryAuthority(network).identity(), ScriptedServer.answer).start(network)
            },
            expect: .unreachable(
                "network/data-dropped", ["bytes_acknowledged": "0", "address": family.server], within: ExpectedVerdict.silent)
        ) { try $0.router.filter(.forward, "tcp dport \(levelPort) meta length > 80 drop") }
        .options(LaboratoryAuthority.options).seenByStatus()
    }

    private static let otherNames = ["DNS:www.other.example", "IP:203.0.113.77"]

    /// A server whose handshake fails, with a certificate that the client trusts.
    private static func tls(
        _ name: String, _ expected: ExpectedVerdict, isShown: Bool = true, settings: String
    ) -> Fault {
        let fault = Fault.fromStart("server \(name)", levelURL("tls", host: FaultNetwork.name), expect: expected) { network in
            try network.resolver(.records([family.server]))
            try ScriptedServer(try LaboratoryAuthority(network).identity(), settings: settings).start(network)
        }
        .nameServers([FaultNetwork.nameServers[0]]).options(LaboratoryAuthority.options)
        return isShown ? fault.showingCertificate() : fault
    }

    /// A server whose certificate has errors.
    private static func certificate(
        _ name: String, _ cause: String, _ errors: [String]? = nil, within limit: Duration = ExpectedVerdict.answered,
        _ identity: @escaping @Sendable (FaultNetwork) throws -> ServerIdentity
    ) -> Fault {
        let evidence = errors.map { ["verify_errors": $0.joined(separator: ", ")] } ?? [:]
        return Fault.fromStart("certificate \(name)", levelURL("tls"), expect: .down(cause, evidence, within: limit)) { network in
            try ScriptedServer(try identity(network)).start(network)
        }
        .options(LaboratoryAuthority.options).showingCertificate()
    }
}
