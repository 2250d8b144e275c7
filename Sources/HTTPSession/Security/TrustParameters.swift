internal import FoundationEssentials

/// The values on which the evaluation of an attempt's servers depends. ``SecuritySettings`` decides which attempts share them.
final class TrustParameters: Sendable {
    /// The contexts of TLS sessions and connections, which are equal only for the same policies, hosts, identity (or request for one) and decisions.
    ///
    /// This is an object because easy handles keep it: it has no private key, and most comparisons are of an object with itself.
    final class SessionContexts: Equatable, Sendable {
        let server: Data
        /// The context of the HTTPS proxy; `nil` if there is none.
        let proxy: Data?

        init(server: Data, proxy: Data?) {
            self.server = server
            self.proxy = proxy
        }

        static func == (one: SessionContexts, other: SessionContexts) -> Bool {
            one === other || (one.server == other.server && one.proxy == other.proxy)
        }
    }

    /// The host of an HTTPS proxy and its policy. Pins apply to servers, so a proxy's policy usually has none.
    struct Proxy: Sendable {
        let policy: PreparedPolicy
        let host: String
    }

    let policy: PreparedPolicy
    /// The host in the form of ``normalizedHost(_:)``; `nil` for no check of the name.
    let host: String?
    let proxy: Proxy?
    let identity: ClientIdentity?
    let decisions: ServerTrustDecisions?
    let asksForIdentity: Bool
    /// The contexts for these values. A later decision of the handler leads to other contexts, so it needs parameters of its own.
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
        policy: PreparedPolicy, host: String?, proxy: Proxy? = nil, identity: ClientIdentity? = nil,
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

    /// A path of no file that stands for the server's context.
    var connectionTag: String { Self.tag(sessionContexts.server) }
    /// A path of no file that stands for the context of the HTTPS proxy; `nil` if there is none.
    var proxyConnectionTag: String? { sessionContexts.proxy.map(Self.tag) }

    private static func tag(_ context: Data) -> String { "/nonexistent/\(context.base64EncodedString())" }
}
