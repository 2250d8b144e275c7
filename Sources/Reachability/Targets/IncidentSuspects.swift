/// The components that may be at fault when a target fails, the nearest to this machine first.
///
/// | cause | suspects, in this order | scope |
/// |---|---|---|
/// | `address/duplicate-address` of the target's address | the target | path |
/// | `link`, `address`, `route`, `firewall`, `local` | the interface in the evidence, else this machine | local |
/// | `neighbor/gateway-silent` | the gateway | path |
/// | `dns/no-resolver` | the resolvers | local |
/// | `dns/resolver-…`, `dns/server-failure` | the gateway that leads to the silent name server, or is itself one (\*); the name server in the evidence, else all resolvers (\*); the target | path |
/// | `network/tunnel-silent` | the interface of the tunnel | path |
/// | `network/upstream-silent` of several networks | the gateway, or the interface of the tunnel | path |
/// | `network/upstream-silent` of one network | that gateway or interface (\*), the host (\*), the target | path |
/// | `tcp/timeout`, `neighbor/host-silent` | the gateway of the route without a witness (\*), the host (\*), the target | path if the target is unreachable, else server |
/// | `network/host-unreachable`, reported by a router | the router (\*), the host (\*), the router again | path |
/// | another of `network`, reported by a router | the router (`hop`) | path |
/// | any other, or an ICMP message of the target itself | the target | path if the target is unreachable, else server |
///
/// A suspect with (\*) is at fault only if other targets show it (``IncidentBook``). Without it, one is proved by the cause.
struct IncidentSuspects: Hashable, Sendable {
    /// A component, and what the failure says of it.
    struct Suspect: Hashable, Sendable {
        let subject: Incident.Subject
        let scope: Incident.Scope
        /// Whether the cause alone shows that the component is at fault.
        let isProved: Bool
        /// The name under which the failure counts against the component, which is at fault from two different names; `nil` if it
        /// does not count.
        let voice: String?
        /// The address of a host; `nil` for other components.
        let address: IPAddress?

        init(
            subject: Incident.Subject, scope: Incident.Scope, isProved: Bool = true, voice: String? = nil,
            address: IPAddress? = nil
        ) {
            (self.subject, self.scope, self.isProved) = (subject, scope, isProved)
            (self.voice, self.address) = (voice, address)
        }
    }

    /// The components that several targets may share.
    let shared: [Suspect]
    /// The component if none of ``shared`` is at fault.
    let last: Suspect
    /// Whether the server has answered, as by a refusal.
    let isAnswered: Bool

    /// Creates the suspects of a target's failure.
    ///
    /// - Parameters:
    ///   - cause: the cause of the failure.
    ///   - target: the target.
    ///   - address: the address that was tried last; `nil` if it is not known.
    ///   - status: the status of the target.
    init(_ cause: Cause, of target: Endpoint, at address: IPAddress? = nil, _ status: StatusName) {
        let facts = Facts(cause)
        isAnswered = cause.isAnswer
        let scope: Incident.Scope = status == .unreachable ? .path : .server
        let own = Suspect(subject: .init(.target, target.text), scope: scope)
        if let (subject, scope) = Self.proved(by: cause, facts) {
            (shared, last) = ([Suspect(subject: subject, scope: scope)], own)
            return
        }
        let isReported = cause.layer == .network && cause.code == .hostUnreachable
        last = isReported ? facts.reporter.map { Suspect(subject: .init(.hop, $0), scope: .path) } ?? own : own
        // A degraded target answers.
        shared =
            status == .degraded
            ? [] : Self.suspected(cause, facts, address ?? facts["address"].flatMap { IPAddress($0) }, scope)
    }

    /// Whether a component is among the suspects.
    func names(_ subject: Incident.Subject) -> Bool { last.subject == subject || shared.contains { $0.subject == subject } }

    /// Whether this machine alone determines the failure, so that an incident opens at once.
    var isCertain: Bool { shared.first.map { $0.isProved && ($0.scope == .local || $0.subject.kind == .interface) } ?? false }

    /// Returns the component that the cause alone shows to be at fault; `nil` if it shows none but the target.
    private static func proved(by cause: Cause, _ facts: Facts) -> (Incident.Subject, Incident.Scope)? {
        switch (cause.layer, cause.code) {
        // The address of the target's host, not of this machine.
        case (.address, .duplicateAddress) where facts["link_address"] != nil: nil
        case (.link, _), (.address, _), (.route, _), (.firewall, _), (.local, _): (.init(.interface, facts["interface"]), .local)
        case (.neighbor, .gatewaySilent): (.init(.gateway, facts.gateway), .path)
        case (.dns, .noResolver): (.init(.resolver, nil), .local)
        case (.network, .tunnelSilent): (.init(.interface, facts["interface"]), .path)
        case (.network, .upstreamSilent): facts.isOfSeveralNetworks ? (facts.firstHop, .path) : nil
        case (.network, .hostUnreachable): nil
        case (.network, _): facts.reporter.map { (.init(.hop, $0), .path) }
        default: nil
        }
    }

    /// Returns the components that are at fault if other targets show it too.
    private static func suspected(
        _ cause: Cause, _ facts: Facts, _ address: IPAddress?, _ scope: Incident.Scope
    ) -> [Suspect] {
        // The same link-local address on two links is of two hosts, and an update does not name the link.
        let host = address.flatMap { $0.isLinkLocal || $0.isLoopback ? nil : $0 }
            .map { Suspect(subject: .init(.host, "\($0)"), scope: scope, isProved: false, address: $0) }
        switch (cause.layer, cause.code) {
        case (.dns, .resolverRefused) where !cause.isOfLookup: return []
        case (.dns, .resolverRefused), (.dns, .resolverSilent), (.dns, .serverFailure):
            let resolver = Incident.Subject(.resolver, facts["resolver"])
            // A name server behind a gateway is silent for the gateway's reason. A gateway may itself be the one that forwards names.
            let gateway = (cause.code == .resolverSilent ? facts.gateway : nil) ?? facts["resolver"]
            return [
                gateway.map { Suspect(subject: .init(.gateway, $0), scope: .path, isProved: false) },
                Suspect(subject: resolver, scope: .path, isProved: false, voice: facts["name"].map(domain)),
            ].compactMap { $0 }
        case (.network, .upstreamSilent):
            return [Suspect(subject: facts.firstHop, scope: .path, isProved: false), host].compactMap { $0 }
        case _ where cause.isSilence || cause.code == .hostSilent:
            let gateway = facts["witness"] == nil ? facts.gateway : nil
            return [gateway.map { Suspect(subject: .init(.gateway, $0), scope: .path, isProved: false) }, host].compactMap { $0 }
        case (.network, .hostUnreachable):
            let hop = facts.reporter.map { hop in
                Suspect(subject: .init(.hop, hop), scope: .path, isProved: false, voice: address.map { "\($0)" })
            }
            return [hop, host].compactMap { $0 }
        default: return []
        }
    }

    /// Returns the last two labels of a name: an approximation of the domain that somebody has registered. It takes two customers of
    /// `co.uk` for one, which delays the verdict until a third name fails.
    private static func domain(of name: String) -> String {
        name.lowercased().split(separator: ".").suffix(2).joined(separator: ".")
    }
}

extension Incident.Subject {
    /// The place of the component on the way from this machine to the target, from 0.
    var distance: Int {
        switch kind {
        case .interface: 0
        case .gateway: 1
        case .resolver, .hop: 2
        case .host: 3
        case .target: 4
        }
    }
}

/// The evidence of a cause, as far as it names components.
private struct Facts {
    private let evidence: [String: Cause.Evidence]

    init(_ cause: Cause) { evidence = cause.evidence }

    subscript(name: String) -> String? { if case .text(let text)? = evidence[name] { text } else { nil } }

    var isOfSeveralNetworks: Bool { evidence["silent_networks"] != nil }

    /// The router that has reported the failure; `nil` if the target itself has, or nobody.
    var reporter: String? { self["hop"].flatMap { $0 == self["address"] ? nil : $0 } }

    /// The gateway, or the interface of a tunnel, which has none.
    var firstHop: Incident.Subject { gateway.map { .init(.gateway, $0) } ?? .init(.interface, self["interface"]) }

    /// The gateway; a link-local one with its interface.
    var gateway: String? {
        guard let gateway = self["gateway"], let interface = self["interface"], !gateway.contains("%"),
            IPAddress(gateway).map({ $0.family == .v6 && $0.isLinkLocal }) == true
        else { return self["gateway"] }
        return "\(gateway)%\(interface)"
    }
}

extension ServerUpdate {
    /// The address from which the server, or its host's TCP, has answered; `nil` if nothing shows that it does.
    var answeringAddress: IPAddress? {
        switch statusName {
        case .up, .degraded: return address
        case .unknown, .unreachable: return nil
        case .down:
            guard let cause else { return nil }
            return cause.isAnswer ? address : nil
        }
    }
}

extension Cause {
    /// Whether the server, or its host's TCP, has answered.
    package var isAnswer: Bool {
        if isSilence { return false }
        return layer.isAboveConnection || layer == .tcp && (code == .refused || code == .reset) || layer == .dns && !isOfLookup
    }

    /// Whether the name of the target is not resolved. Otherwise a cause of the layer `dns` is that of a target that is a name server: only such a
    /// cause has the port of the target.
    package var isOfLookup: Bool {
        guard layer == .dns, Code.ofEveryTarget[.dns]?.contains(code) == true else { return false }
        return code != .resolverRefused || evidence["port"] == nil
    }
}
