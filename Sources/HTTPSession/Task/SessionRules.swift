internal import FoundationEssentials
internal import Reachability

/// The properties of a session on which a ``TaskMachine`` decides.
final class SessionRules: Sendable {
    let configuration: SessionConfiguration
    let proxies: ProxyOrigins
    /// The credentials by protection space: the only mutable state here.
    let credentials: CredentialStore

    init(_ configuration: SessionConfiguration, proxies: ProxyOrigins, credentials: CredentialStore = CredentialStore()) {
        self.configuration = configuration
        self.proxies = proxies
        self.credentials = credentials
    }

    /// Checks whether the request may be sent. - Returns: the origin that receives it.
    func check(_ request: TransferRequest) throws(HTTPSessionError) -> Origin {
        let origin = try request.validate()
        guard origin.scheme == "https" || configuration.insecureHTTP.allows(origin.host) else {
            throw HTTPSessionError(
                .insecureConnectionRefused, "http is not allowed for '\(origin.host)': see SessionConfiguration.insecureHTTP",
                context: .init(of: request))
        }
        return origin
    }

    /// Whether the origin is reached through a proxy on this machine.
    func hasLoopbackProxy(before origin: Origin) -> Bool {
        guard let host = proxies.proxyURL(for: origin)?.host(percentEncoded: false) else { return false }
        let name = host.withoutBrackets.lowercased()
        return Origin.isLoopback(name) || IPAddress(name)?.isLoopback == true
    }
}
