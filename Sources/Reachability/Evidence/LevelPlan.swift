/// The levels of a probe above TCP: the TLS handshake, the HTTP request, and the expected response.
package struct LevelPlan: Hashable, Sendable {
    /// The TLS handshake; `nil` for plain HTTP.
    struct Handshake: Hashable, Sendable {
        /// The name or address that the certificate must have.
        let name: String
        let isAddress: Bool
        let protocols: [String]
        let settings: TLSProbeSettings
    }

    let handshake: Handshake?
    let request: HTTPProbeRequest?
    let expectation: HTTPExpectation

    /// Creates the plan of an endpoint's probes; `nil` for TCP alone.
    ///
    /// - Parameters:
    ///   - endpoint: the target, or the destination of a redirect.
    ///   - settings: the target's settings.
    ///   - method: the method after a redirect; `nil` for that of the settings.
    ///   - isOwnOrigin: whether the endpoint has the scheme, host and port of the target, so that it receives credentials and the field
    ///     Host of the settings.
    init?(_ endpoint: Endpoint, _ settings: ProbeSettings, method: String? = nil, isOwnOrigin: Bool = true) {
        guard endpoint.scheme != .tcp else { return nil }
        let usesHTTP = endpoint.scheme.usesHTTP
        if endpoint.scheme.usesTLS {
            let override = isOwnOrigin ? settings.tls.serverName ?? settings.http.host.map(Self.withoutPort) : nil
            let name: String
            if let override {
                name = override
            } else if case .name(let host) = endpoint.host {
                name = host.hasSuffix(".") ? String(host.dropLast()) : host
            } else {
                name = endpoint.addressText ?? ""
            }
            handshake = Handshake(
                name: name.lowercased(), isAddress: IPAddress(name) != nil,
                protocols: settings.tls.applicationProtocols.isEmpty && usesHTTP
                    ? ["http/1.1"] : settings.tls.applicationProtocols, settings: settings.tls)
        } else {
            handshake = nil
        }
        expectation = usesHTTP ? settings.http.expectation : HTTPExpectation()
        guard usesHTTP else {
            request = nil
            return
        }
        request = HTTPProbeRequest(
            settings.http, method: method, host: endpoint.authority, target: endpoint.path, sendsAuthorization: isOwnOrigin)
    }

    private static func withoutPort(_ host: String) -> String {
        if host.hasPrefix("[") { return String(host.dropFirst().prefix { $0 != "]" }) }
        return String(host.prefix { $0 != ":" })
    }
}

extension Endpoint {
    /// The address without its zone; `nil` for a name.
    var addressText: String? { if case .address(let address, _) = host { "\(address)" } else { nil } }

    /// The host and the port as the field Host has them (RFC 9110 section 7.2): without the default port and without a zone.
    var authority: String {
        let host =
            switch host {
            case .name(let name): name
            case .address(let address, _): address.family == .v6 ? "[\(address)]" : "\(address)"
            }
        return port == scheme.defaultPort ? host : "\(host):\(port)"
    }

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
