/// The evidence of a ``Diagnosis``: the path, a target's verdict with its last probe, and the kernel's answers about its route.
package struct DiagnosisEvidence: Sendable {
    /// The target; `nil` if the path is explained.
    package var endpoint: Endpoint?
    /// The proxy through which the target is probed; `nil` for none.
    package var proxy: Endpoint?
    package var path: NetworkPath
    /// The target's verdict; `nil` if there is none yet, or if the path is explained.
    package var update: ServerUpdate?
    /// The probe that decided the verdict; `nil` if no packet could be sent.
    package var report: ProbeReport?
    /// The route to ``destination``; `nil` if it is not known.
    package var inspection: RouteInspection?
    /// The hops that answered a sweep; `nil` if there was none.
    package var hops: [Hop]?
    /// The first hop's answers to questions of its own; `nil` if it was not asked.
    package var firstHop: HopAnswers?
    /// The results of the addresses of a name that has several; empty for other targets.
    package var addresses: [AddressResult]
    /// The addresses of this machine, with their flags; `nil` if they are not known.
    package var ownAddresses: [Address]?
    /// The interface to which probes are bound; `nil` if the kernel chooses.
    package var boundTo: String?
    /// The time from the start of the first probe to the inspection; `nil` if it is not known.
    package var examined: Duration?
    /// The state and cause by the examination; `nil` if the verdict stands.
    private(set) var conclusion: Conclusion?

    package init(
        endpoint: Endpoint? = nil, proxy: Endpoint? = nil, path: NetworkPath, update: ServerUpdate? = nil,
        report: ProbeReport? = nil,
        inspection: RouteInspection? = nil, hops: [Hop]? = nil, firstHop: HopAnswers? = nil, addresses: [AddressResult] = [],
        ownAddresses: [Address]? = nil, boundTo: String? = nil, examined: Duration? = nil
    ) {
        self.endpoint = endpoint
        self.proxy = proxy
        self.path = path
        self.update = update
        self.report = report
        self.inspection = inspection
        self.hops = hops
        self.firstHop = firstHop
        self.addresses = addresses
        self.ownAddresses = ownAddresses
        self.boundTo = boundTo
        self.examined = examined
    }

    /// The evidence with its conclusion.
    var withConclusion: Self {
        var copy = self
        copy.conclusion = concluded()
        return copy
    }

    /// The host whose route explains the result.
    package enum Destination: Hashable, Sendable {
        case server(IPAddress)
        /// A name server, if the target's name has no address.
        case resolver(ResolverConfiguration.Nameserver)
        /// The first gateway of the path, if the path is explained.
        case gateway(NetworkPath.Gateway)

        package var address: IPAddress {
            switch self {
            case .server(let address): address
            case .resolver(let server): server.address
            case .gateway(let gateway): gateway.address
            }
        }

        /// The name or number of the interface of a link-local address; `nil` for other addresses.
        package var zone: String? {
            switch self {
            case .server: nil
            case .resolver(let server): server.zone
            case .gateway(let gateway): gateway.zone
            }
        }
    }

    /// The host whose route explains the result; `nil` if no packet was to be sent.
    package var destination: Destination? {
        guard let endpoint else { return path.gateways.first.map { .gateway($0) } }
        if let address = update?.address ?? report?.address { return .server(address) }
        if case .address(let address, _) = (proxy ?? endpoint).host { return .server(address) }
        return resolver.map { .resolver($0) }
    }

    /// The name server that answered last, or that was asked last.
    var resolver: ResolverConfiguration.Nameserver? {
        let exchanges = report?.lookup?.families.flatMap(\.exchanges) ?? []
        return report?.lookup?.server ?? (exchanges.last { $0.outcome == .answered } ?? exchanges.last)?.server
    }
}

/// Conclusions from the evidence.
extension DiagnosisEvidence {
    /// The status of the target; unknown without a verdict.
    var status: StatusName { conclusion?.status ?? update?.statusName ?? .unknown }

    /// The cause of the target's verdict, of its last failed probe, or of the unsatisfied path.
    var cause: Cause? {
        guard endpoint != nil else { return path.cause }
        if let conclusion { return conclusion.cause }
        return status == .unknown ? report?.cause : update?.cause
    }

    /// Whether the target answers, although not as well as it should.
    var isDegraded: Bool { status == .degraded }

    /// The interface that leads to the destination, or the one that is at fault.
    var interface: NetworkInterface? {
        func present(_ index: UInt32) -> NetworkInterface? { path.interfaces.first { $0.index == index } }
        if let route = inspection?.chosen, let found = present(route.interface) { return found }
        if let interface = update?.interface { return present(interface.index) ?? interface }
        if case .text(let name)? = cause?.evidence["interface"], let found = path.interfaces.first(where: { $0.hasName(name) }) {
            return found
        }
        return path.interface ?? path.interfaces.first { $0.type != .loopback && $0.level >= .degradedCarrier }
    }

    /// Whether the destination is this machine.
    var isLocal: Bool { inspection?.isLocal ?? destination?.address.isLoopback ?? false }

    /// Whether the destination is on the link, so that no router is before it.
    var isOnLink: Bool { inspection?.isOnLink == true && interface?.type != .tunnel }

    /// The host that answered a packet to the destination, which proves all layers before it.
    enum Answerer: Hashable {
        case destination
        /// The server's host, but only to a datagram.
        case host
        /// A router. The first hop answered too, because the packet passed it.
        case router(IPAddress)
        /// Only the first hop, to a question of its own.
        case firstHop
        case unknown
    }

    var answerer: Answerer {
        if status == .up || status == .degraded || report?.cause == nil && report != nil { return .destination }
        if hops?.contains(where: \.isServer) == true { return .destination }
        if let cause, let answerer = Self.answerer(of: cause, destination: destination?.address) { return answerer }
        if cause?.evidence["host"] == .text("answered") { return .host }
        if let last = hops?.last { return .router(last.address) }
        return cause?.evidence["first_hop"] == .text("answered") ? .firstHop : .unknown
    }

    private static func answerer(of cause: Cause, destination: IPAddress?) -> Answerer? {
        switch (cause.layer, cause.code) {
        case (.dns, .serverFailure), (.dns, .nameNotFound), (.dns, .noAddressForFamily), (.dns, .resolverRefused),
            (.dns, .unusableAddress):
            return .destination
        case (.quality, _): return .destination
        case _ where cause.isAnswer: return .destination
        case (.network, _):
            guard case .text(let text)? = cause.evidence["hop"], let hop = IPAddress(text), cause.evidence["inferred"] == nil
            else { return nil }
            return hop == destination ? .destination : .router(hop)
        default: return nil
        }
    }
}
