internal import Certificates

/// The levels of a probe above TCP: the TLS handshake, the HTTP request, and the expected response.
package struct LevelPlan: Hashable, Sendable {
    /// The name or address that a certificate must have.
    let serverName: String
    let tls: TLSProbeSettings
    /// The client certificate; `nil` for none, and for other hosts than the target.
    let identity: ClientCertificate?
    let request: HTTPProbeRequest?
    let expectation: HTTPExpectation
    let followsRedirects: Bool
    /// Whether the URL is a canary, whose response is known.
    let isCanary: Bool
    /// The protocol of the endpoint.
    let scheme: Endpoint.Scheme
    /// The proxy to which the connection is made; `nil` if it is made to the server.
    let proxy: ProbeProxy?
    /// The proxy of the settings, which may serve only a part of the URLs.
    private let configuredProxy: ProbeProxy?
    /// Whether all URLs up to the plan's have the origin of the target, and whether they have its host.
    let (keepsOrigin, keepsHost): (Bool, Bool)
    /// The redirects that led from the target to this plan's host; `nil` for the target itself.
    let redirects: Redirects?

    /// Creates the plan of an endpoint's probes; `nil` for TCP alone. `redirection` has led to the endpoint.
    init?(_ endpoint: Endpoint, _ settings: ProbeSettings, after redirection: HTTPRedirection? = nil) {
        guard endpoint.scheme != .tcp else { return nil }
        scheme = endpoint.scheme
        redirects = redirection?.redirects
        // The settings name the target, not the host to which it redirects.
        (keepsOrigin, keepsHost) = redirection.map { ($0.keepsOrigin ?? false, $0.keepsHost ?? false) } ?? (true, true)
        serverName = keepsHost ? Self.serverName(endpoint, settings) : Self.host(of: endpoint)
        tls = settings.tls
        identity = keepsHost ? settings.tls.identity : nil
        isCanary = settings.http.isCanary
        proxy = settings.http.proxy.flatMap { $0.serves(endpoint) ? $0 : nil }
        configuredProxy = settings.http.proxy
        // The redirect of a canary is a portal's answer. What the portal's own server answers would hide it.
        followsRedirects = settings.http.followsRedirects && !isCanary
        if endpoint.scheme.usesHTTP {
            let own = settings.http.request(to: endpoint)
            request =
                redirection.map { redirection in
                    let next = own?.redirected(to: redirection.url, method: redirection.method)
                    let keepsOrigin = redirection.keepsOrigin ?? false
                    var request = keepsOrigin ? next : next?.forOtherOrigin(isDowngrade: redirection.redirects.isDowngraded)
                    request?.cookies = redirection.cookies
                    return request
                } ?? own
            expectation = settings.http.expectation
        } else {
            request = nil
            expectation = HTTPExpectation()
        }
    }

    /// Whether a redirect within the host is followed on a connection to the same server: the host itself, or the proxy.
    func continues(to url: HTTPURL) -> Bool {
        guard let configuredProxy else { return true }
        return configuredProxy.serves(url.probeEndpoint) == (proxy != nil)
    }

    /// Whether the first connection begins with a TLS handshake.
    var usesTLS: Bool { scheme.usesTLS }

    /// The names of ALPN: those of the settings, else HTTP/1.1 for a request.
    var applicationProtocols: [String] {
        if !tls.applicationProtocols.isEmpty { return tls.applicationProtocols }
        return request == nil ? [] : ["http/1.1"]
    }

    private static func serverName(_ endpoint: Endpoint, _ settings: ProbeSettings) -> String {
        if let name = settings.tls.serverName { return name }
        if endpoint.scheme.usesHTTP, let host = settings.http.host { return withoutPort(host) }
        return host(of: endpoint)
    }

    private static func host(of endpoint: Endpoint) -> String {
        switch endpoint.host {
        case .name(let name): name
        case .address(let address, _): "\(address)"
        }
    }

    private static func withoutPort(_ host: String) -> String {
        if host.hasPrefix("[") { return String(host.dropFirst().prefix { $0 != "]" }) }
        return String(host.prefix { $0 != ":" })
    }
}

extension Endpoint {
    /// The host and the port as the field Host has them (RFC 9110 section 7.2): without the default port and without a zone.
    private var authority: String { HTTPURL(self)?.authority ?? text }

    /// Returns the endpoint at one address of its name, with settings by which the server is asked for the same name.
    package func pinned(to address: IPAddress, _ settings: ProbeSettings) -> (Endpoint, ProbeSettings) {
        let target = Endpoint(
            Values(host: .address(address, zone: nil), port: port, scheme: scheme, path: path.isEmpty ? nil : path, text: nil))
        var settings = settings
        if scheme.usesTLS, settings.tls.serverName == nil, case .name(let name) = host { settings.tls.serverName = name }
        if scheme.usesHTTP, settings.http.host == nil { try? settings.http.setHost(authority) }
        return (target, settings)
    }
}
