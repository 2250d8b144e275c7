/// `http://HOST[:PORT][/PATH]` and `https://…`: an HTTP/1.1 request, over TLS or without it, also through a proxy and after redirects.
struct HTTPKind: ProbeKind {
    let schemes = [
        SchemeForm(
            name: "http", meaning: "answers a request as expected", defaultPort: 80, emptyPath: "/", path: HTTPKind.path,
            pathText: "[/PATH]", estimatedBytes: HTTPKind.exchangeBytes),
        SchemeForm(
            name: "https", meaning: "both", defaultPort: 443, emptyPath: "/", path: HTTPKind.path, pathText: "[/PATH]",
            usesTLS: true,
            estimatedBytes: TLSKind.handshakeBytes + HTTPKind.exchangeBytes),
    ]
    let codes: [(layer: Cause.Layer, codes: [Cause.Code])] = [
        (.http, [.timeout, .status, .captivePortal, .invalidResponse, .unexpectedBody, .unexpectedHeader])
    ]
    let settings: [any KindSettings.Type] = [HTTPProbeSettings.self]
    let facts: [any ProbeFacts.Type] = [HTTPFacts.self]

    /// The bytes of an HTTP exchange with a small page.
    private static let exchangeBytes = 8_192

    /// The maximum length of a path with its query in bytes. RFC 9112 section 3 recommends support of 8,000.
    private static let pathLimit = 8_000

    /// Returns the path and the query in the form of RFC 9112 section 3.2.1; `nil` for the path `/` alone. A fragment is dropped, and
    /// characters beyond ASCII are percent-encoded (RFC 3986 section 2.5).
    @Sendable private static func path(_ text: Substring) throws(Endpoint.ParseError) -> String? {
        let text = text.prefix { $0 != "#" }
        guard text.utf8.count <= pathLimit else {
            throw Endpoint.ParseError(description: "path: is longer than \(pathLimit) bytes")
        }
        var target = text.utf8.first == UInt8(ascii: "/") ? "" : "/"
        for byte in text.utf8 {
            switch byte {
            case 0...0x20, 0x7f:
                throw Endpoint.ParseError(
                    description: "path: contains a space or a control character; write %\(hexadecimal(byte))")
            case 0x80...: target += "%\(hexadecimal(byte))"
            default: target.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return target == "/" ? nil : target
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count == 1 ? "0\(digits)" : digits
    }

    func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type] {
        scheme.usesTLS ? settings + TLSKind().settings : settings
    }

    func peer(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint { settings.http.proxy(for: endpoint) ?? endpoint }

    func cause(_ cause: Cause, onTheWayTo peer: Endpoint, _ settings: ProbeSettings) -> Cause {
        settings.http.proxy.map { cause.before($0) } ?? cause
    }

    func plan(for endpoint: Endpoint, _ settings: ProbeSettings, after continuation: Continuation?) -> AnyProbePlan? {
        AnyProbePlan(HTTPPlan(endpoint, settings, after: continuation?.facts[HTTPFacts.self].redirection))
    }

    func judge(_ connection: ProbedConnection) -> LevelFindings { LevelFindings(ofHTTP: connection) }

    func step(_ layer: Cause.Layer, of endpoint: Endpoint, _ report: ProbeReport?, degradation: Cause?) -> LayerStep {
        layer == .tls
            ? TLSKind.step(of: endpoint, report, degradation: degradation)
            : layer == .http ? step(of: endpoint, report) : unused(layer, of: endpoint)
    }

    func statement(of layer: Cause.Layer, of endpoint: Endpoint) -> String? {
        layer == .http ? "the response is an expected one" : TLSKind().statement(of: layer, of: endpoint)
    }

    func pin(_ endpoint: Endpoint, _ settings: inout ProbeSettings) {
        if endpoint.scheme.usesTLS { TLSKind().pin(endpoint, &settings) }
        if settings.http.host == nil { try? settings.http.setHost(endpoint.authority) }
    }
}

extension Endpoint.Scheme {
    /// An HTTP/1.1 request on a TCP connection (RFC 9112).
    public static let http = Endpoint.Scheme("http")
    /// An HTTP/1.1 request over TLS.
    public static let https = Endpoint.Scheme("https")
    /// Whether probes send an HTTP request.
    package var usesHTTP: Bool { self == .http || self == .https }
}

extension Endpoint {
    /// The host and the port as the field Host has them (RFC 9110 section 7.2): without the default port and without a zone.
    fileprivate var authority: String { HTTPURL(self)?.authority ?? text }
}

extension ProbeSettings {
    /// The request of HTTP probes, and the response that they expect.
    public var http: HTTPProbeSettings {
        get { self[kind: HTTPProbeSettings.self] }
        set { self[kind: HTTPProbeSettings.self] = newValue }
    }
}

/// Recordings do not have credentials, and of rules only that there are some.
extension HTTPProbeSettings: KindSettings {
    package static let name = "http"
    package static let hasOwnReading = true
    package static let help = "the request"
    package static let keys: [SettingKey<HTTPProbeSettings>] = [
        SettingKey("method", .text(limit: 1_000) { settings, text in try settings.setMethod(text) }, ""),
        SettingKey("host", .text(limit: 1_000) { settings, text in try settings.setHost(text) }, ""),
        SettingKey("body", .text(limit: 65_536) { settings, text in settings.body = Array(text.utf8) }, ""),
        SettingKey("redirects", .flag(\.followsRedirects), "`true` or `false`"),
    ]

    package struct Recorded: Codable {
        var host: String?
        var method: String
        var redirects: Bool
        var statuses: String?
        var versions: [String]
        var declared: Bool
        /// Omitted if false.
        var canary: Bool?
        /// The proxy's URL with `***` in place of credentials, and the list of hosts without it; omitted without a proxy.
        var proxy: String?
        var proxyExceptions: String?
    }

    package var recorded: Recorded {
        Recorded(
            host: host, method: method, redirects: followsRedirects, statuses: statuses, versions: versions.sorted(),
            declared: expectation.isDeclared, canary: isCanary ? true : nil, proxy: proxy.map(\.recordedURL),
            proxyExceptions: proxy?.exceptionList)
    }

    package init(_ recorded: Recorded) {
        self.init()
        method = recorded.method
        host = recorded.host
        followsRedirects = recorded.redirects
        statuses = recorded.statuses
        versions = Set(recorded.versions)
        hasFurtherRules = recorded.declared
        isCanary = recorded.canary ?? false
        try? setProxy(recorded.proxy, except: recorded.proxyExceptions ?? "")
    }
}

extension Cause.Layer {
    /// The HTTP exchange.
    public static let http = Cause.Layer("http")
}

extension Cause.Code {
    /// The response's status code is not one of the expected codes.
    public static let status = Cause.Code("status")
    /// A captive portal answers instead of the server (RFC 8910).
    public static let captivePortal = Cause.Code("captive-portal")
    /// The response is not valid HTTP, or is not acceptable.
    public static let invalidResponse = Cause.Code("invalid-response")
    /// The response's body does not match the expectation.
    public static let unexpectedBody = Cause.Code("unexpected-body")
    /// A header field is missing or does not match the expectation.
    public static let unexpectedHeader = Cause.Code("unexpected-header")
}
