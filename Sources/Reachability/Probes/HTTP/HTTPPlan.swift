internal import Certificates

/// What an HTTP probe sends on its connections, and what it expects.
struct HTTPPlan: StreamPlan {
    /// The handshake with an https server.
    let tls: TLSPlan
    let request: HTTPProbeRequest?
    let expectation: HTTPExpectation
    let followsRedirects: Bool
    /// Whether the URL is a canary, whose response is known.
    let isCanary: Bool
    let scheme: Endpoint.Scheme
    /// The proxy to which the connection is made; `nil` if it is made to the server.
    let proxy: ProbeProxy?
    /// The proxy of the settings, which may serve only a part of the URLs.
    private let configuredProxy: ProbeProxy?
    /// Whether all URLs up to the plan's have the origin of the target, and whether they have its host.
    let (keepsOrigin, keepsHost): (Bool, Bool)
    /// The redirects that led from the target to this plan's host; `nil` for the target itself.
    let redirects: Redirects?

    /// Creates the plan of an endpoint's probes. `redirection` has led to the endpoint.
    init(_ endpoint: Endpoint, _ settings: ProbeSettings, after redirection: Boxed<HTTPRedirection>? = nil) {
        let (redirection, http) = (redirection?.value, settings.http)
        scheme = endpoint.scheme
        redirects = redirection?.redirects
        // The settings name the target, not the host to which it redirects.
        (keepsOrigin, keepsHost) = redirection.map { ($0.keepsOrigin ?? false, $0.keepsHost ?? false) } ?? (true, true)
        isCanary = http.isCanary
        proxy = http.proxy.flatMap { $0.serves(endpoint) ? $0 : nil }
        configuredProxy = http.proxy
        // The redirect of a canary is a portal's answer. What the portal's own server answers would hide it.
        followsRedirects = http.followsRedirects && !isCanary
        let own = http.request(to: endpoint)
        let keepsOrigin = keepsOrigin
        request =
            redirection.map { redirection in
                let next = own?.redirected(to: redirection.url, method: redirection.method)
                var request = keepsOrigin ? next : next?.forOtherOrigin(isDowngrade: redirection.redirects.isDowngraded)
                request?.cookies = redirection.cookies
                return request
            } ?? own
        expectation = http.expectation
        tls = TLSPlan(
            endpoint, settings, serverName: http.host.map(Self.withoutPort), isOfTarget: keepsHost,
            defaultProtocols: request == nil ? [] : ["http/1.1"])
    }

    func makeRun(deadline: Int64) -> any StreamRun { HTTPRun(self, deadline: deadline) }

    /// Whether a redirect within the host is followed on a connection to the same server: the host itself, or the proxy.
    func continues(to url: HTTPURL) -> Bool {
        guard let configuredProxy else { return true }
        return configuredProxy.serves(url.probeEndpoint) == (proxy != nil)
    }

    private static func withoutPort(_ host: String) -> String {
        if host.hasPrefix("[") { return String(host.dropFirst().prefix { $0 != "]" }) }
        return String(host.prefix { $0 != ":" })
    }
}
