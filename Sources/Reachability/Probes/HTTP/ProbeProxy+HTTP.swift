internal import Wire

/// The parts of a proxy that HTTP defines.
extension ProbeProxy {
    /// The default port of curl's proxies.
    private static let defaultPort: UInt16 = 1080

    /// Parses the URL of a proxy: `http://`, optionally a user and a password, a host, and optionally a port.
    ///
    /// - Throws: The reason, without any part of the URL: it may contain a password.
    init(_ url: String, exceptions list: String) throws(HTTPProbeSettings.InvalidValue) {
        guard url.lowercased().hasPrefix("http://") else {
            throw .init("probes use proxies of HTTP only; give http:// and a host")
        }
        let authority = url.utf8.dropFirst(7).prefix { !"/?#".utf8.contains($0) }
        // The name server would receive the beginning of a password.
        guard !url.utf8.dropFirst(7 + authority.count).contains(UInt8(ascii: "@")) else {
            throw .init("write %2F, %3F and %23 for '/', '?' and '#' of a user's name or password")
        }
        guard authority.count(where: { $0 == UInt8(ascii: "@") }) <= 1 else {
            throw .init("write %40 for '@' of a user's name or password")
        }
        let sign = authority.lastIndex(of: UInt8(ascii: "@"))
        let host = Substring(sign.map { authority[authority.index(after: $0)...] } ?? authority)
        let endpoint: Endpoint
        do {
            // %25 is the percent sign before a zone (RFC 6874).
            let zoned = host.split(separator: "%25", maxSplits: 1).joined(separator: "%")
            let url = try HTTPURL("http://\(zoned)")
            // A URL without a port has that of servers.
            let digits = host.utf8.reversed().prefix { HTTPGrammar.isDigit($0) }
            let hasPort = !digits.isEmpty && host.utf8.dropLast(digits.count).last == UInt8(ascii: ":")
            endpoint = hasPort ? url.endpoint : try Endpoint(host: HTTPURL.text(url.endpoint.host), port: Self.defaultPort)
        } catch {
            // A password with a slash is taken for a host or a port.
            let isPort = "\(error)".hasPrefix("port")
            throw .init(
                isPort
                    ? "the port is not a number from 1 to 65535"
                    : host.isEmpty ? "the host is missing" : "the host is neither an address nor a name")
        }
        guard let sign else {
            self.init(endpoint: endpoint, authorization: "", exceptionList: list)
            return
        }
        let user = Substring(authority[..<sign]).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let parts = user.map { PercentEncoding.decode($0) }
        guard let name = parts[0], let password = parts.count > 1 ? parts[1] : "" else {
            throw .init("the user's name or the password has an invalid %")
        }
        let credentials = HTTPProbeRequest.Authorization.basic(user: name, password: password)
        if let problem = credentials.problem { throw .init(problem) }
        self.init(endpoint: endpoint, authorization: credentials.fieldValue, exceptionList: list)
    }

    /// The host and the port in sentences and in evidence.
    var text: String { endpoint.hostAndPort }

    /// The URL without the credentials, in recordings.
    var recordedURL: String { "http://\(authorization.isEmpty ? "" : "***@")\(text)" }

    /// Whether the probes of an endpoint use the proxy.
    func serves(_ target: Endpoint) -> Bool {
        guard target.scheme.usesHTTP else { return false }
        return !exceptions.contains(HTTPURL.text(target.host).lowercased(), port: Int(target.port))
    }

    /// The fields of a request to the proxy, each with its line end.
    var fieldLines: String { authorization.isEmpty ? "" : "Proxy-Authorization: \(authorization)\r\n" }
}
