internal import Certificates

/// The TLS handshake of a probe: with whom, and what is trusted.
struct TLSPlan: StreamPlan {
    let scheme: Endpoint.Scheme
    /// The name or address that a certificate must have.
    let serverName: String
    let settings: TLSProbeSettings
    /// The names of ALPN.
    let applicationProtocols: [String]
    /// The client certificate; `nil` for none, and for other hosts than the target.
    private let identity: ClientCertificate?

    /// Creates the plan of a handshake.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - settings: the settings of the target.
    ///   - serverName: the name of the server, unless the settings have one; `nil` for the host of the endpoint.
    ///   - isOfTarget: whether the server is the target's host, for which alone the settings' name and client certificate are meant.
    ///   - defaultProtocols: the names of ALPN, unless the settings have some.
    init(
        _ endpoint: Endpoint, _ settings: ProbeSettings, serverName: String? = nil, isOfTarget: Bool = true,
        defaultProtocols: [String] = []
    ) {
        scheme = endpoint.scheme
        self.settings = settings.tls
        identity = isOfTarget ? settings.tls.identity : nil
        let given = isOfTarget ? settings.tls.serverName ?? serverName : nil
        self.serverName = given ?? Self.host(of: endpoint)
        applicationProtocols = settings.tls.applicationProtocols.isEmpty ? defaultProtocols : settings.tls.applicationProtocols
    }

    private static func host(of endpoint: Endpoint) -> String {
        switch endpoint.host {
        case .name(let name): name
        case .address(let address, _): "\(address)"
        }
    }

    func makeRun(deadline: Int64) -> any StreamRun { TLSRun(self, deadline: deadline) }

    /// Returns the context of the clients with these settings. Contexts in use are shared.
    func makeContext() -> TLSClientContext {
        TLSClientContext.of(
            TLSClientSettings(authorities: settings.authorities, isInsecure: settings.isInsecure, identity: identity))
    }

    /// Returns a client of a new connection. `nanosecondsSpent` is the processor time of earlier handshakes of the probe.
    fileprivate func makeClient(_ context: TLSClientContext?, nanosecondsSpent: Int64 = 0) throws(CertificateError) -> TLSClient {
        try TLSClient(
            context: context ?? makeContext(), serverName: serverName, applicationProtocols: applicationProtocols,
            nanosecondsSpent: nanosecondsSpent)
    }
}

extension LevelResult {
    /// Begins the handshake of a conversation, and appends its first bytes to the output.
    ///
    /// - Returns: the client; `nil` if this machine cannot begin, which is noted.
    mutating func startHandshake(
        _ plan: TLSPlan, _ context: TLSClientContext?, nanosecondsSpent: Int64 = 0, output: inout [UInt8]
    ) -> TLSClient? {
        do throws(CertificateError) {
            let client = try plan.makeClient(context, nanosecondsSpent: nanosecondsSpent)
            output += client.start()
            return client
        } catch {
            localFailure = error.reason
            return nil
        }
    }

    /// Ends the TLS of a conversation, notes its facts, and appends its last bytes to the output. `end` counts if the handshake has not ended by itself.
    mutating func endHandshake(_ client: TLSClient, _ end: TLSHandshakeEnd, output: inout [UInt8]) {
        tls = client.facts
        handshakeEnd = client.handshakeEnd ?? end
        output += client.close()
    }
}

extension CertificateError {
    /// The reason in one line.
    var reason: String {
        switch self {
        case .invalid(let reason): reason
        case .noAuthorities(let variable, let path, let number):
            "\(variable): '\(path)' \(number == 0 ? "has no certificate" : "cannot be read: \(errorText(number))")"
        case .unknownCiphers, .unknownCipherSuites: "OpenSSL refuses its ciphers"
        }
    }
}
