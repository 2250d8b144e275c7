internal import Foundation

/// Which HTTP proxy stands before an origin, as libcurl will choose it: a proxy's credentials belong to the proxy, whatever is reached
/// through it. Exceptions are not looked at, because only a proxy that has answered is asked about.
struct ProxyOrigins: Sendable {
    private let http: Origin?
    private let https: Origin?

    init(_ proxy: SessionConfiguration.Proxy, environment: [String: String]) {
        func first(_ names: [String]) -> Origin? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }.flatMap(ProxyOrigins.origin)
        }
        switch proxy {
        case .none: (http, https) = (nil, nil)
        case .explicit(let text, _):
            let origin = ProxyOrigins.origin(text)
            (http, https) = (origin, origin)
        case .environment:
            // HTTP_PROXY in capitals is not asked (CVE-2016-5385).
            http = first(["http_proxy", "all_proxy", "ALL_PROXY"])
            https = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        }
    }

    func proxy(before origin: Origin) -> Origin? { origin.scheme == "https" ? https : http }

    /// CURLOPT_PROXY: without a scheme it is http, without a port 1080, or 443 for https.
    private static func origin(_ text: String) -> Origin? {
        guard var parts = URLComponents(string: text.contains("://") ? text : "http://\(text)") else { return nil }
        if parts.port == nil { parts.port = parts.scheme?.lowercased() == "https" ? 443 : 1_080 }
        return parts.url.flatMap { Origin($0) }
    }
}
