internal import FoundationEssentials

/// The values on which the evaluation of an attempt's servers depends. Attempts with the same values share them.
final class TrustParameters: Sendable {
    /// The contexts of TLS sessions and connections, which are equal only for the same policies, hosts, identity (or request for one) and decisions.
    struct SessionContexts: Hashable, Sendable {
        let server: Data
        /// The context of the HTTPS proxy; `nil` if there is none.
        let proxy: Data?
    }

    let policy: PreparedPolicy
    /// The host in the form of ``normalizedHost(_:)``; `nil` for no check of the name.
    let host: String?
    let proxy: ServerTrust.Proxy?
    let identity: ClientIdentity?
    let decisions: ServerTrustDecisions?
    let asksForIdentity: Bool
    /// The contexts at the time of the initialization: later decisions change them.
    let sessionContexts: SessionContexts

    /// Computes the contexts for these values.
    ///
    /// - Parameters:
    ///   - policy: The policy for the server.
    ///   - host: The name or address of the server, as in the URL; `nil` for no check of the name.
    ///   - proxy: The HTTPS proxy; `nil` for none.
    ///   - identity: The client's identity; `nil` for none.
    ///   - decisions: The decisions of the handler that is asked about every server. Without its decision no server is trusted. `nil` for no
    ///     handler.
    ///   - asksForIdentity: Whether the attempt ends if the server requests a client certificate and `identity` is `nil`, so that a handler can
    ///     choose one (``ServerTrust/requestedAuthorities``).
    init(
        policy: PreparedPolicy, host: String?, proxy: ServerTrust.Proxy? = nil, identity: ClientIdentity? = nil,
        decisions: ServerTrustDecisions? = nil, asksForIdentity: Bool = false
    ) {
        self.policy = policy
        let host = host.map(normalizedHost)
        self.host = host
        self.proxy = proxy
        self.identity = identity
        self.decisions = decisions
        self.asksForIdentity = asksForIdentity && identity == nil
        sessionContexts = SessionContexts(
            server: ServerTrustEvaluator.sessionContext(
                policy, host: host, identity: identity, decisions: decisions, asksForIdentity: self.asksForIdentity),
            proxy: proxy.map {
                ServerTrustEvaluator.sessionContext($0.policy, host: normalizedHost($0.host), identity: nil, decisions: nil)
            })
    }

    /// A path of no file, which is equal only for the same policy, host, identity (or request for one) and decisions.
    var connectionTag: String { Self.tag(sessionContexts.server) }
    /// A path of no file for the HTTPS proxy; `nil` if there is none.
    var proxyConnectionTag: String? { sessionContexts.proxy.map(Self.tag) }

    private static func tag(_ context: Data) -> String { "/nonexistent/\(context.base64EncodedString())" }
}
