/// The values in which failures of one incident are equal.
///
/// | cause | subject | scope |
/// |---|---|---|
/// | `address/duplicate-address` of a target | the target | path |
/// | `link`, `address`, `route`, `firewall`, `local` | the interface in the evidence, else this machine | local |
/// | `neighbor/gateway-silent` | the gateway | path |
/// | `dns/no-resolver` | the resolvers | local |
/// | `dns/resolver-…`, `dns/server-failure` | the name server in the evidence, else all resolvers | path |
/// | `network/tunnel-silent` | the interface of the tunnel | path |
/// | `network/upstream-silent` of several networks | the gateway, or the interface of the tunnel | path |
/// | `network`, reported by a router | the router (`hop`) | path |
/// | any other, or an ICMP message of the target itself | the target | path if the target is unreachable, else server |
struct IncidentKey: Hashable, Sendable {
    let layer: Cause.Layer
    let code: Cause.Code
    let subject: Incident.Subject
    let scope: Incident.Scope

    init(layer: Cause.Layer, code: Cause.Code, subject: Incident.Subject, scope: Incident.Scope) {
        (self.layer, self.code, self.subject, self.scope) = (layer, code, subject, scope)
    }

    /// Creates the key of a target's failure.
    init(_ cause: Cause, of target: Endpoint, isUnreachable: Bool) {
        layer = cause.layer
        code = cause.code
        let own: (Incident.Subject, Incident.Scope) = (.init(.target, target.text), isUnreachable ? .path : .server)
        (subject, scope) = Self.subject(of: cause) ?? own
    }

    /// Returns the component before the target that is at fault, and its scope; `nil` if the evidence names none.
    private static func subject(of cause: Cause) -> (Incident.Subject, Incident.Scope)? {
        switch (cause.layer, cause.code) {
        // The address of the target's host, not of this machine.
        case (.address, .duplicateAddress) where cause.evidence["link_address"] != nil: return nil
        case (.link, _), (.address, _), (.route, _), (.firewall, _), (.local, _):
            return (.init(.interface, cause.text("interface")), .local)
        case (.neighbor, .gatewaySilent):
            return (.init(.gateway, cause.gateway), .path)
        case (.dns, .noResolver):
            return (.init(.resolver, nil), .local)
        case (.dns, .resolverRefused), (.dns, .resolverSilent), (.dns, .serverFailure):
            return (.init(.resolver, cause.text("resolver")), .path)
        case (.network, .tunnelSilent):
            return (.init(.interface, cause.text("interface")), .path)
        case (.network, .upstreamSilent):
            // Of one network alone, the server may be at fault.
            guard cause.evidence["silent_networks"] != nil else { return nil }
            return (cause.gateway.map { .init(.gateway, $0) } ?? .init(.interface, cause.text("interface")), .path)
        case (.network, _):
            guard let hop = cause.text("hop"), hop != cause.text("address") else { return nil }
            return (.init(.hop, hop), .path)
        default: return nil
        }
    }

    /// Whether the cause is a fault of the subject as such. Such a fault affects every target behind the subject, so a later
    /// failure belongs to the same incident. Another cause concerns a destination or a name.
    var isFaultOfSubject: Bool {
        switch (layer, code) {
        case (.link, _), (.address, _), (.local, _), (.neighbor, _), (.route, .noRoute): true
        case (.dns, .noResolver), (.dns, .resolverRefused), (.dns, .resolverSilent), (.network, .tunnelSilent),
            (.network, .upstreamSilent):
            true
        default: subject.kind == .target
        }
    }
}

extension Cause {
    fileprivate func text(_ name: String) -> String? {
        if case .text(let text)? = evidence[name] { text } else { nil }
    }

    /// The gateway in the evidence; a link-local one with its interface.
    fileprivate var gateway: String? {
        guard let gateway = text("gateway"), let interface = text("interface"), !gateway.contains("%"),
            IPAddress(gateway).map({ $0.family == .v6 && $0.isLinkLocal }) == true
        else { return text("gateway") }
        return "\(gateway)%\(interface)"
    }
}
