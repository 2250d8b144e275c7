internal import FoundationEssentials

/// A session's policies and identity, prepared once.
package struct SecuritySettings: Sendable {
    let policy: PreparedPolicy
    private let proxies: ProxyOrigins
    /// `nil` where no proxy speaks TLS itself.
    private let proxyPolicy: PreparedPolicy?
    private let identity: ClientIdentity?

    /// Reads what the policies name: not on the session's thread.
    init(_ configuration: SessionConfiguration, _ proxies: ProxyOrigins) throws(HTTPSessionError) {
        policy = try PreparedPolicy.of(configuration.securityPolicy)
        identity = configuration.clientIdentity
        self.proxies = proxies
        proxyPolicy = proxies.haveSecure ? try PreparedPolicy.of(configuration.proxySecurityPolicy) : nil
    }

    /// Judges one attempt's servers. `isSecure`: the origin is spoken to by https, whatever its address says (RFC 6797). `decisions`,
    /// `identities`: what handlers have said, where they are asked about servers, and about certificates of this side's.
    package func trust(
        for origin: Origin, isSecure: Bool, decisions: ServerTrustDecisions?, identities: ClientCertificateDecisions? = nil
    ) -> ServerTrust {
        var (identity, asks) = (identity, false)
        if identity == nil, let identities {
            switch identities.choice(for: origin, at: .now) {
            case .identity(let chosen): identity = chosen
            case nil: asks = true
            case .some(.none): break
            }
        }
        let proxy = proxyPolicy.flatMap { policy in
            proxies.secureHost(before: origin, isSecure: isSecure).map { ServerTrust.Proxy(policy: policy, host: $0) }
        }
        return ServerTrust(
            policy: policy, host: origin.host, proxy: proxy, identity: identity, decisions: decisions, asksForIdentity: asks)
    }

    /// Whether a proxy speaks TLS itself.
    package var hasSecureProxy: Bool { proxyPolicy != nil }
}
