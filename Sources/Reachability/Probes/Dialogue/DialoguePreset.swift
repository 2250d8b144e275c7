internal import Expressions

extension DialogueSettings {
    /// A dialogue of a well-known protocol. Those that can begin TLS on a plain connection do: their server is not up without it.
    @nonexhaustive public enum Preset: String, CaseIterable, Sendable {
        /// A mail server (RFC 3207).
        case smtp
        /// A server of mailboxes (RFC 9051 section 6.2.1).
        case imap
        /// A server of mailboxes (RFC 2595).
        case pop3
        /// A server of files (RFC 4217).
        case ftp
        /// A directory (RFC 4511 section 4.14).
        case ldap
        /// PostgreSQL.
        case postgres
        /// MySQL and MariaDB.
        case mysql
        /// A server of messages (RFC 6120 section 5).
        case xmpp
        /// The version of an SSH server (RFC 4253 section 4.2), without TLS.
        case ssh
        /// The answer of Redis or Valkey to PING, without TLS. A server that requires a password answers too.
        case redis
    }
}

extension DialogueSettings.Preset {
    var steps: [DialogueStep] { Self.compiled[self] ?? [] }

    // All targets share the compiled expressions.
    private static let compiled = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.makeSteps()) })

    private func makeSteps() -> [DialogueStep] {
        switch self {
        case .smtp:
            [
                Self.line("^220( |$)", unless: Self.failed), .send("EHLO netwatch.invalid"),
                Self.line("(?i)^250[- ]STARTTLS", unless: Self.failed, lack: "^250( |$)"), .send("STARTTLS"),
                Self.line("^220( |$)", unless: Self.failed), .startTLS, .send("EHLO netwatch.invalid"),
                Self.line("^250( |$)", unless: Self.failed), .send("QUIT"),
            ]
        case .imap:
            [
                Self.line(#"(?i)^\* (OK|PREAUTH)"#, unless: #"(?i)^\* BYE"#), .send("a STARTTLS"),
                Self.line("(?i)^a OK", unless: "(?i)^a (NO|BAD)"), .startTLS, .send("b CAPABILITY"),
                Self.line("(?i)^b OK", unless: "(?i)^b (NO|BAD)"), .send("c LOGOUT"),
            ]
        case .pop3:
            [
                Self.line(#"^\+OK"#, unless: "^-ERR"), .send("STLS"), Self.line(#"^\+OK"#, unless: "^-ERR"), .startTLS,
                .send("QUIT"), Self.line(#"^\+OK"#, unless: "^-ERR"),
            ]
        case .ftp:
            [
                Self.line("^220( |$)", unless: Self.failed), .send("AUTH TLS"),
                Self.line("^234( |$)", unless: Self.failed), .startTLS, .send("QUIT"),
            ]
        case .ldap:
            [.sendBytes(Self.ldapRequest), .expectMessage(.ldap), .startTLS]
        case .postgres:
            // The length of the message, and the number of the request.
            [.sendBytes([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]), .expectMessage(.postgres), .startTLS]
        case .mysql:
            [
                .expectMessage(.mysql), .sendBytes(Self.mysqlRequest), .startTLS, .sendBytes(Self.mysqlLogin),
                .expectMessage(.mysqlLogin),
            ]
        case .xmpp:
            [
                .send(
                    """
                    <?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
                    to='${host}' version='1.0'>
                    """),
                Self.text(
                    "(?s)^(.*<starttls.*?</stream:features>)", unless: "<stream:error",
                    lack: "</stream:features>|<stream:features/>"),
                .send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
                Self.text("(?s)^(.*?(?:<proceed[^>]*/>|</proceed>))", unless: "<failure|<stream:error"), .startTLS,
            ]
        case .ssh: [Self.line("^SSH-(2[.]0|1[.]99)-"), .send("SSH-2.0-netwatch")]
        case .redis: [.send("PING"), Self.line(#"^(\+PONG|-NOAUTH|-NOPERM)"#, unless: "^-"), .send("QUIT")]
        }
    }

    /// ExtendedRequest with the name of StartTLS, `1.3.6.1.4.1.1466.20037`, as message 1.
    private static let ldapRequest: [UInt8] = {
        let name = Array("1.3.6.1.4.1.1466.20037".utf8)
        let request = [0x80, UInt8(name.count)] + name
        let message = [0x02, 0x01, 0x01, 0x77, UInt8(request.count)] + request
        return [0x30, UInt8(message.count)] + message
    }()

    /// The flags of protocol 4.1, TLS and authentication, the largest packet, and the character set utf8mb4.
    private static let mysqlHead: [UInt8] =
        [0x00, 0x8a, 0x00, 0x00] + [0, 0, 0, 1] + [45] + [UInt8](repeating: 0, count: 23)

    /// "Protocol::SSLRequest", as packet 1.
    private static let mysqlRequest: [UInt8] = [32, 0, 0, 1] + mysqlHead

    /// "Protocol::HandshakeResponse41" of a user without a password, as packet 2.
    private static let mysqlLogin: [UInt8] = {
        let content = mysqlHead + Array("netwatch\0\0mysql_native_password\0".utf8)
        return [UInt8(content.count), 0, 0, 2] + content
    }()

    /// An answer of SMTP or FTP that is no success.
    private static let failed = "^[45][0-9][0-9]( |$)"

    private static func line(_ text: String, unless refusal: String? = nil, lack: String? = nil) -> DialogueStep {
        .expectLine(
            .init(expression: compiled(text), refusal: refusal.map { compiled($0) }, lack: lack.map { compiled($0) }))
    }

    private static func text(_ text: String, unless refusal: String, lack: String? = nil) -> DialogueStep {
        .expectText(
            .init(expression: compiled(text, captures: true), refusal: compiled(refusal), lack: lack.map { compiled($0) }))
    }

    private static func compiled(_ text: String, captures: Bool = false) -> Expressions.Expression {
        // A defect of this file, which every test of the presets meets.
        do { return captures ? try Expressions.Expression(capturing: text) : try Expressions.Expression(text) } catch {
            preconditionFailure("\(text): \(error)")
        }
    }
}
