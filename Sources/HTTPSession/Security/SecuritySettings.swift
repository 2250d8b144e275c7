internal import Foundation

/// A session's policies and identity, prepared once.
package struct SecuritySettings: Sendable {
    let policy: PreparedPolicy
    private let proxy: ServerTrust.Proxy?
    private let identity: ClientIdentity?

    /// Reads what the policies name: not on the session's thread.
    package init(_ configuration: SessionConfiguration) throws(HTTPSessionError) {
        policy = try PreparedPolicy.of(configuration.securityPolicy)
        identity = configuration.clientIdentity
        if let host = SecuritySettings.secureProxyHost(configuration.proxy) {
            proxy = ServerTrust.Proxy(policy: try PreparedPolicy.of(configuration.proxySecurityPolicy), host: host)
        } else {
            proxy = nil
        }
    }

    /// Judges one attempt's servers. `decisions`, `identities`: what handlers have said, where they are asked about servers, and about
    /// certificates of this side's.
    package func trust(
        for origin: Origin, decisions: ServerTrustDecisions?, identities: ClientCertificateDecisions? = nil
    ) -> ServerTrust {
        var (identity, asks) = (identity, false)
        if identity == nil, let identities {
            switch identities.choice(for: origin, at: .now) {
            case .identity(let chosen): identity = chosen
            case nil: asks = true
            case .some(.none): break
            }
        }
        return ServerTrust(
            policy: policy, host: origin.host, proxy: proxy, identity: identity, decisions: decisions, asksForIdentity: asks)
    }

    /// Whether a proxy speaks TLS itself.
    package var hasSecureProxy: Bool { proxy != nil }

    /// The host of a proxy that speaks TLS itself, where there is one.
    private static func secureProxyHost(_ proxy: SessionConfiguration.Proxy) -> String? {
        let texts: [String]
        switch proxy {
        case .none: texts = []
        case .explicit(let text, _): texts = [text]
        case .environment:
            // libcurl looks at them in this order, and ignores HTTP_PROXY in capitals (CVE-2016-5385).
            texts = ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"].compactMap {
                ProcessInfo.processInfo.environment[$0]
            }
        }
        return texts.first { $0.lowercased().hasPrefix("https://") }.flatMap { URL(string: $0)?.host(percentEncoded: false) }
    }
}
