internal import FoundationEssentials

/// Which proxy stands before an origin, as libcurl will choose it.
struct ProxyOrigins: Sendable {
    private let http: URL?
    private let https: URL?
    private let exceptions: ProxyExceptions
    /// Whether any is named, well or badly.
    let areNamed: Bool

    init(_ proxy: SessionConfiguration.Proxy, environment: [String: String]) {
        func first(_ names: [String]) -> String? { names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty } }
        switch proxy {
        case .none: (http, https, exceptions, areNamed) = (nil, nil, ProxyExceptions(""), false)
        case .explicit(let text, let names):
            let url = ProxyOrigins.url(text)
            (http, https, exceptions, areNamed) = (url, url, ProxyExceptions(names.joined(separator: ",")), true)
        case .environment:
            // HTTP_PROXY in capitals is not asked (CVE-2016-5385).
            let plain = first(["http_proxy", "all_proxy", "ALL_PROXY"])
            let secure = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
            (http, https) = (plain.flatMap(ProxyOrigins.url), secure.flatMap(ProxyOrigins.url))
            areNamed = plain != nil || secure != nil
            exceptions = ProxyExceptions(first(["no_proxy", "NO_PROXY"]) ?? "")
        }
    }

    /// Whether everything is reached directly.
    var isEmpty: Bool { http == nil && https == nil }

    /// An HTTP proxy: its credentials belong to it, whatever is reached through it. Exceptions are not looked at, because only a proxy
    /// that has answered is asked about.
    func proxy(before origin: Origin) -> Origin? { named(before: origin).flatMap { Origin($0) } }

    /// The proxy of any kind, with its port, that has to be reached before the origin is; `nil`: the origin is reached directly.
    func address(before origin: Origin) -> URL? { exceptions.contain(origin.host) ? nil : named(before: origin) }

    /// Whether there is one. `isSecure`: the origin is spoken to by https, whatever its address says (RFC 6797).
    func stand(before origin: Origin, isSecure: Bool) -> Bool {
        guard !isEmpty, !exceptions.contain(origin.host) else { return false }
        return (isSecure || origin.scheme == "https" ? https : http) != nil
    }

    /// Whether one of them speaks TLS itself.
    var haveSecure: Bool { [http, https].contains { $0?.scheme?.lowercased() == "https" } }

    /// The host of the proxy before an origin, if it speaks TLS itself: the environment may name another for http than for https.
    func secureHost(before origin: Origin, isSecure: Bool) -> String? {
        let proxy = isSecure || origin.scheme == "https" ? https : http
        return proxy?.scheme?.lowercased() == "https" ? proxy?.host(percentEncoded: false) : nil
    }

    private func named(before origin: Origin) -> URL? { origin.scheme == "https" ? https : http }

    /// CURLOPT_PROXY: without a scheme it is http, without a port 1080, or 443 for https.
    private static func url(_ text: String) -> URL? {
        guard var parts = URLComponents(string: text.contains("://") ? text : "http://\(text)") else { return nil }
        if parts.port == nil { parts.port = parts.scheme?.lowercased() == "https" ? 443 : 1_080 }
        return parts.url?.withASCIIHost
    }
}
