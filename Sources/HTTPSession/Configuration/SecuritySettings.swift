internal import EventLoop
internal import FoundationEssentials

/// The security policies and the client identity of a session, prepared once.
package struct SecuritySettings: Sendable {
    /// The policy for servers; `nil` if the transport verifies no certificates.
    let policy: PreparedPolicy?
    private let proxies: ProxyOrigins
    /// The policy for HTTPS proxies; `nil` if none is configured.
    private let proxyPolicy: PreparedPolicy?
    private let identity: ClientIdentity?
    /// The parameters for at most 256 servers. All attempts without a handler's decisions share them, because no other value changes.
    private let sharedParameters = Locked<[Server: TrustParameters]>([:])

    private struct Server: Hashable {
        let origin: Origin
        let isSecure: Bool
    }

    /// Reads the files of the policies. This blocks, so it does not run on the session's thread.
    ///
    /// `verifiesCertificates`: The transport verifies certificates. Otherwise the policies are checked, but no authorities are loaded.
    init(
        _ configuration: SessionConfiguration, _ proxies: ProxyOrigins, verifiesCertificates: Bool
    ) throws(HTTPSessionError) {
        identity = configuration.clientIdentity
        self.proxies = proxies
        guard verifiesCertificates else {
            try PreparedPolicy.check(configuration.securityPolicy)
            if proxies.haveHTTPS { try PreparedPolicy.check(configuration.proxySecurityPolicy) }
            (policy, proxyPolicy) = (nil, nil)
            return
        }
        policy = try PreparedPolicy.of(configuration.securityPolicy)
        proxyPolicy = proxies.haveHTTPS ? try PreparedPolicy.of(configuration.proxySecurityPolicy) : nil
    }

    /// Loads the authorities for a request that uses TLS to its server or to a proxy. The first call blocks, so none is made on the session's thread.
    /// The handshake reports an error.
    func loadAuthorities(for origin: Origin) {
        if origin.scheme == "https" { _ = try? policy?.roots() }
        _ = try? proxyPolicy?.roots()
    }

    /// The evaluation of the servers of one attempt; `nil` if the transport verifies no certificates.
    ///
    /// `isSecure`: https is used even if the URL has http (RFC 6797). `decisions` and `identities` are the decisions of the handlers for server trust
    /// and for client certificates; `nil` if there is no such handler.
    package func trust(
        for origin: Origin, isSecure: Bool, decisions: ServerTrustDecisions?, identities: ClientCertificateDecisions? = nil
    ) -> ServerTrust? {
        guard let policy else { return nil }
        guard decisions == nil, identity != nil || identities == nil else {
            return ServerTrust(parameters(policy, for: origin, isSecure: isSecure, decisions, identities))
        }
        let server = Server(origin: origin, isSecure: isSecure)
        if let shared = sharedParameters.withLock({ $0[server] }) { return ServerTrust(shared) }
        let parameters = parameters(policy, for: origin, isSecure: isSecure, nil, nil)
        sharedParameters.withLock { shared in
            if shared.count >= 256 { shared.removeAll() }
            shared[server] = parameters
        }
        return ServerTrust(parameters)
    }

    private func parameters(
        _ policy: PreparedPolicy, for origin: Origin, isSecure: Bool, _ decisions: ServerTrustDecisions?,
        _ identities: ClientCertificateDecisions?
    ) -> TrustParameters {
        var (identity, asks) = (identity, false)
        if identity == nil, let identities {
            switch identities.choice(for: origin, at: .now) {
            case .identity(let chosen): identity = chosen
            case nil: asks = true
            case .some(.none): break
            }
        }
        let proxy = proxyPolicy.flatMap { policy in
            proxies.httpsHost(for: origin, isSecure: isSecure).map { TrustParameters.Proxy(policy: policy, host: $0) }
        }
        return TrustParameters(
            policy: policy, host: origin.host, proxy: proxy, identity: identity, decisions: decisions, asksForIdentity: asks)
    }

    /// Whether one of the proxies is an HTTPS proxy.
    package var hasSecureProxy: Bool { proxyPolicy != nil }
}
