internal import FoundationEssentials
internal import Reachability

/// The proxies of a session by origin. The session reads the environment once, when it is made, and decides for each request; libcurl gets no list of
/// exceptions of its own.
struct ProxyOrigins: Sendable {
    private let http: URL?
    private let https: URL?
    /// The proxies as configured, for libcurl, which reports those whose URLs cannot be parsed.
    private let httpText: String?
    private let httpsText: String?
    private let exceptions: ProxyExceptions
    /// Whether a proxy is configured, even if its URL cannot be parsed.
    let areConfigured: Bool

    init(_ proxy: SessionConfiguration.Proxy, environment: [String: String]) {
        func first(_ names: [String]) -> String? { names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty } }
        switch proxy {
        case .none:
            (http, https, exceptions, areConfigured) = (nil, nil, ProxyExceptions(""), false)
            (httpText, httpsText) = (nil, nil)
        case .explicit(let text, let names):
            let url = ProxyOrigins.url(text)
            (http, https, exceptions, areConfigured) = (url, url, ProxyExceptions(names.joined(separator: ",")), true)
            (httpText, httpsText) = (text, text)
        case .environment:
            // HTTP_PROXY in capitals is not read (CVE-2016-5385).
            let plain = first(["http_proxy", "all_proxy", "ALL_PROXY"])
            let secure = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
            (http, https) = (plain.flatMap(ProxyOrigins.url), secure.flatMap(ProxyOrigins.url))
            (httpText, httpsText) = (plain, secure)
            areConfigured = plain != nil || secure != nil
            exceptions = ProxyExceptions(first(["no_proxy", "NO_PROXY"]) ?? "")
        }
    }

    /// Whether all connections are direct.
    var isEmpty: Bool { http == nil && https == nil }

    /// The origin of the HTTP proxy for an origin; `nil` if the proxy is of another kind, or none is configured.
    ///
    /// Its credentials belong to this origin, for every server behind it. Exceptions are not checked: callers ask about a proxy that has sent
    /// a response.
    func httpProxy(for origin: Origin) -> Origin? { configuredProxy(for: origin).flatMap { Origin($0) } }

    /// The URL of the proxy of any kind, with its port, through which the origin is reached; `nil` for a direct connection.
    func proxyURL(for origin: Origin) -> URL? { exceptions.contains(origin) ? nil : configuredProxy(for: origin) }

    /// The proxy as configured, through which the origin is reached; `nil` for a direct connection. `isSecure`: https is used even if the URL has
    /// http (RFC 6797).
    func proxyText(for origin: Origin, isSecure: Bool) -> String? {
        guard areConfigured, !exceptions.contains(origin) else { return nil }
        return isSecure || origin.scheme == "https" ? httpsText : httpText
    }

    /// Whether one of the proxies is an HTTPS proxy.
    var haveHTTPS: Bool { [http, https].contains { $0?.scheme?.lowercased() == "https" } }

    /// The host of the HTTPS proxy for an origin; `nil` for other proxies. The environment may name different proxies for http and https.
    func httpsHost(for origin: Origin, isSecure: Bool) -> String? {
        let proxy = isSecure || origin.scheme == "https" ? https : http
        return proxy?.scheme?.lowercased() == "https" ? proxy?.host(percentEncoded: false) : nil
    }

    private func configuredProxy(for origin: Origin) -> URL? { origin.scheme == "https" ? https : http }

    /// Parses a URL of a proxy. The defaults are those of CURLOPT_PROXY: the scheme http, the port 1080, or 443 for https.
    private static func url(_ text: String) -> URL? {
        guard var parts = URLComponents(string: text.contains("://") ? text : "http://\(text)") else { return nil }
        if parts.port == nil { parts.port = parts.scheme?.lowercased() == "https" ? 443 : 1_080 }
        return parts.url?.withASCIIHost
    }
}

extension ProxyExceptions {
    /// Whether an origin is one of the hosts, or below one.
    func contains(_ origin: Origin) -> Bool { contains(origin.host, port: origin.port) }
}
