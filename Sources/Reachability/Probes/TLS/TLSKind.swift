/// `tls://HOST[:PORT]`: a TLS handshake on a TCP connection.
struct TLSKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "tls", meaning: "completes a trusted TLS handshake", defaultPort: 443, usesTLS: true,
            estimatedBytes: TLSKind.handshakeBytes)
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [
        (
            .tls,
            [
                .handshakeTimeout, .handshakeStalled, .certificateExpired, .certificateNotYetValid, .certificateUntrusted,
                .hostnameMismatch, .certificateRevoked, .protocolMismatch, .certificateExpiring, .handshakeRefused,
                .clientCertificateRequired, .excessiveCost,
            ]
        )
    ]
    let settings: [any KindSettings.Type] = [TLSProbeSettings.self]

    /// The bytes of a TLS handshake, whose largest part is the server's chain of certificates.
    static let handshakeBytes = 8_192

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        AnyProbePlan(TLSPlan(endpoint, settings))
    }

    func judge(_ connection: ProbedConnection) -> LevelFindings {
        var findings = LevelFindings()
        findings.judgeHandshake(connection)
        return findings
    }

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        layer == .tls ? Self.step(of: endpoint, report, degradation: degradation) : unused(layer, of: endpoint)
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? {
        layer == .tls && endpoint.scheme.usesTLS ? "the handshake is complete" : nil
    }

    func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings) {
        if settings.tls.serverName == nil, case .name(let name) = endpoint.host { settings.tls.serverName = name }
    }
}

extension Endpoint.Scheme {
    /// A TLS handshake on a TCP connection (RFC 8446, RFC 5246).
    public static let tls = Endpoint.Scheme("tls")
    /// Whether probes begin with a TLS handshake.
    package var usesTLS: Bool { form.usesTLS }
}

extension ProbeSettings {
    /// The trust of TLS probes, and the certificate that they expect.
    public var tls: TLSProbeSettings {
        get { self[kind: TLSProbeSettings.self] }
        set { self[kind: TLSProbeSettings.self] = newValue }
    }
}

extension TLSProbeSettings: KindSettings {
    package static let name = "tls"
    package static let hasOwnReading = true
    package static let help = "the trust, and the certificate that is expected"
    package static let keys: [SettingKey<TLSProbeSettings>] = [
        SettingKey("server_name", .text(limit: 253) { settings, text in settings.serverName = text }, ""),
        SettingKey("insecure", .flag(\.isInsecure), "`true` or `false`"),
        SettingKey("certificate_days", .number(\.certificateDays, 0...36_500), ""),
    ]

    package struct Recorded: Codable {
        var serverName: String?
        var insecure: Bool
        var certificateDays: Int
    }

    package var recorded: Recorded {
        Recorded(serverName: serverName, insecure: isInsecure, certificateDays: certificateDays)
    }

    package init(_ recorded: Recorded) {
        self.init()
        serverName = recorded.serverName
        isInsecure = recorded.insecure
        certificateDays = recorded.certificateDays
    }
}

extension Cause.Layer {
    /// The TLS handshake.
    public static let tls = Cause.Layer("tls")
}

extension Cause.Code {
    /// The TLS handshake does not finish before the deadline. The server has sent a part of it.
    public static let handshakeTimeout = Cause.Code("handshake-timeout")
    /// The server accepts the connection and does not answer the client's hello before the deadline.
    public static let handshakeStalled = Cause.Code("handshake-stalled")
    /// The certificate is no longer valid.
    public static let certificateExpired = Cause.Code("certificate-expired")
    /// The certificate is not valid yet.
    public static let certificateNotYetValid = Cause.Code("certificate-not-yet-valid")
    /// No trusted authority signed the certificate, or a pin does not match.
    public static let certificateUntrusted = Cause.Code("certificate-untrusted")
    /// The certificate does not contain the server's name.
    public static let hostnameMismatch = Cause.Code("hostname-mismatch")
    /// The certificate is revoked.
    public static let certificateRevoked = Cause.Code("certificate-revoked")
    /// The two sides have no TLS version or cipher in common, or the server does not speak TLS.
    public static let protocolMismatch = Cause.Code("protocol-mismatch")
    /// The certificate expires within the configured number of days. The server is `degraded`.
    public static let certificateExpiring = Cause.Code("certificate-expiring")
    /// The server ends the handshake with an alert, by closing the connection, or with a reset.
    public static let handshakeRefused = Cause.Code("handshake-refused")
    /// The server requires a client certificate, or rejects the one it received.
    public static let clientCertificateRequired = Cause.Code("client-certificate-required")

    /// The server makes the client compute more than an honest server does: long chains, large keys, large groups. The client ends the
    /// handshake, and probes the server at most once a minute.
    public static let excessiveCost = Cause.Code("excessive-cost")
}
