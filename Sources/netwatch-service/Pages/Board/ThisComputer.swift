import Reachability

/// The layers of this machine that all targets share, for the strip at the top of the page: link, address, gateway, resolver, Internet.
struct ThisComputer: Hashable, Sendable {
    enum Layer: String, Hashable, Sendable, CaseIterable {
        case link, address, gateway, resolver, internet
    }

    /// The result of a layer.
    enum Finding: Hashable, Sendable {
        /// Something proves that the layer works: the kernel's state, or a packet that came back.
        case works
        /// The layer answers, but not as well as it should.
        case degraded
        case fails
        /// The layer is configured, and nothing shows whether it works.
        case unproven
        /// A layer before this one fails.
        case notReached
        /// The path does not need the layer.
        case notUsed
    }

    struct Facet: Hashable, Sendable {
        var layer: Layer
        var finding: Finding
        /// The component, or the reason for the finding, in a few words.
        var detail: String
        /// The cause, if the layer fails or is degraded; `nil` otherwise.
        var cause: Cause?

        /// Whether the result says nothing that an earlier layer's failure does not say. Only the resolver can fail by itself then: none is
        /// configured.
        fileprivate func isConsequence(of failing: Facet) -> Bool {
            switch finding {
            case .unproven: true
            case .fails where failing.layer == .link || failing.layer == .address: cause?.code != .noResolver
            case .fails: failing.cause.map { $0.isSameFailure(as: cause) } ?? false
            case .works, .degraded, .notReached, .notUsed: false
            }
        }
    }

    /// The layers in the order of ``Layer``.
    let facets: [Facet]

    /// The cause of the first layer that fails; `nil` if none does.
    var failure: Facet? { facets.first { $0.finding == .fails } }

    init(_ board: Board) {
        guard let path = board.path?.path else {
            facets = Layer.allCases.map { Facet(layer: $0, finding: .unproven, detail: "not read yet") }
            return
        }
        let reader = ComputerReader(board: board, path: path)
        var facets = [reader.link, reader.address, reader.gateway, reader.resolver, reader.internet]
        if let failing = facets.firstIndex(where: { $0.finding == .fails }) {
            for index in facets.indices where index > failing && facets[index].isConsequence(of: facets[failing]) {
                facets[index].finding = .notReached
                facets[index].cause = nil
            }
        }
        self.facets = facets
    }
}

/// The conclusions about the layers from the path, the open incidents and the targets that answer.
private struct ComputerReader {
    let board: Board
    let path: NetworkPath

    /// The interface of the path, or the one that the cause names, or the best one with a medium.
    private var interface: NetworkInterface? {
        if let interface = path.interface { return interface }
        if case .text(let name)? = path.cause?.evidence["interface"],
            let found = path.interfaces.first(where: { $0.hasName(name) })
        {
            return found
        }
        return path.interfaces.filter { $0.type != .loopback }.max { $0.level < $1.level }
    }

    private func failure(_ layer: ThisComputer.Layer, in causes: [Cause.Layer]) -> ThisComputer.Facet? {
        guard let cause = path.cause, causes.contains(cause.layer) else { return nil }
        return ThisComputer.Facet(layer: layer, finding: .fails, detail: interface?.name ?? "none", cause: cause)
    }

    /// The cause of an open incident whose subject is of this kind.
    private func incident(_ kind: Incident.Subject.Kind) -> Incident? {
        board.incidents.first { $0.incident.state == .open && $0.incident.subject.kind == kind }?.incident
    }

    var link: ThisComputer.Facet {
        if let failure = failure(.link, in: [.link]) { return failure }
        guard let interface else { return ThisComputer.Facet(layer: .link, finding: .fails, detail: "no interface") }
        let under = path.underlying.map { " over \($0.name)" } ?? ""
        return ThisComputer.Facet(layer: .link, finding: .works, detail: "\(interface.name) (\(interface.type.rawValue))\(under)")
    }

    var address: ThisComputer.Facet {
        if let failure = failure(.address, in: [.address]) { return failure }
        let addresses = interface?.addresses.map(\.address).filter { !$0.isLinkLocal } ?? []
        guard let first = addresses.first, path.cause?.layer != .link else {
            return ThisComputer.Facet(layer: .address, finding: .unproven, detail: addresses.first.map { "\($0)" } ?? "none")
        }
        let others = addresses.count > 1 ? " and \(addresses.count - 1) more" : ""
        return ThisComputer.Facet(layer: .address, finding: .works, detail: "\(first)\(others)")
    }

    var gateway: ThisComputer.Facet {
        if let failure = failure(.gateway, in: [.route, .neighbor]) { return failure }
        if let incident = incident(.gateway) {
            return ThisComputer.Facet(
                layer: .gateway, finding: .fails, detail: incident.subject.name ?? "", cause: incident.cause)
        }
        let gateways = path.gateways.map(\.description).joined(separator: ", ")
        guard path.status == .satisfied else { return ThisComputer.Facet(layer: .gateway, finding: .unproven, detail: "none") }
        guard !gateways.isEmpty else { return ThisComputer.Facet(layer: .gateway, finding: .notUsed, detail: "not used") }
        return ThisComputer.Facet(layer: .gateway, finding: isGatewayProven ? .works : .unproven, detail: gateways)
    }

    /// Whether a target beyond the link answers over the path's interface.
    private var isGatewayProven: Bool {
        let networks = path.interfaces.flatMap(\.addresses)
        let isBeyond = { (update: ServerUpdate) in
            guard update.statusName == .up || update.statusName == .degraded, let address = update.address, !address.isLoopback,
                let interface = update.interface,
                interface.index == path.interfaceV4?.index || interface.index == path.interfaceV6?.index
            else { return false }
            return !networks.contains { !$0.isDefault && $0.contains(address) }
        }
        return board.canary.map(isBeyond) ?? false || board.targets.contains { isBeyond($0.update) }
    }

    var resolver: ThisComputer.Facet {
        if let incident = incident(.resolver), !isOfTargetAlone(incident) {
            return ThisComputer.Facet(
                layer: .resolver, finding: .fails, detail: incident.subject.name ?? "all name servers", cause: incident.cause)
        }
        let isProven = board.targets.contains { target in
            // Names below localhost ask no name server (RFC 6761 section 6.3).
            guard !target.hasOwnResolver, case .name(let name) = target.update.endpoint.host, name != "localhost",
                !name.hasSuffix(".localhost")
            else {
                return false
            }
            return target.update.statusName == .up || target.update.statusName == .degraded
        }
        // Without a configured server, one at 127.0.0.1 may resolve names.
        let servers = path.nameServers.map { server in
            "\(server)\(server.interface.map { " via \($0)" } ?? "")"
        }.joined(separator: ", ")
        if isProven {
            return ThisComputer.Facet(
                layer: .resolver, finding: .works, detail: "resolves names\(servers.isEmpty ? "" : ": \(servers)")")
        }
        // Without an incident, the last lookup of a target may have failed all the same: it is not confirmed yet.
        let failure = board.targets.lazy.filter { !$0.hasOwnResolver }.compactMap { $0.update.cause }
            .first { Self.isFailureOfResolver($0) }
        if let failure {
            return ThisComputer.Facet(
                layer: .resolver, finding: .fails, detail: "the last lookup failed\(servers.isEmpty ? "" : ": \(servers)")",
                cause: failure)
        }
        guard path.supportsDNS else {
            guard needsResolver else {
                return ThisComputer.Facet(layer: .resolver, finding: .notUsed, detail: "none, and no target has a name")
            }
            let cause = Cause(.dns, .noResolver, detail: "no name server is configured, and no name is known to be resolved")
            return ThisComputer.Facet(layer: .resolver, finding: .fails, detail: "none", cause: cause)
        }
        return ThisComputer.Facet(layer: .resolver, finding: .unproven, detail: servers.isEmpty ? "configured" : servers)
    }

    /// Whether the subject of an incident is a name server that only targets name, and not this computer.
    private func isOfTargetAlone(_ incident: Incident) -> Bool {
        guard let name = incident.subject.name, board.targets.contains(where: \.hasOwnResolver) else { return false }
        return path.supportsDNS && !path.nameServers.contains { $0.description == name }
    }

    /// Whether anything that is monitored has a name; also if nothing is monitored yet.
    private var needsResolver: Bool {
        func hasName(_ update: ServerUpdate) -> Bool { if case .name = update.endpoint.host { true } else { false } }
        return board.targets.isEmpty || board.targets.contains { !$0.hasOwnResolver && hasName($0.update) }
            || board.canary.map(hasName) ?? false
    }

    private static func isFailureOfResolver(_ cause: Cause) -> Bool {
        cause.isOfLookup && [.noResolver, .resolverRefused, .resolverSilent, .serverFailure].contains(cause.code)
    }

    var internet: ThisComputer.Facet {
        guard let canary = board.canary else {
            return ThisComputer.Facet(layer: .internet, finding: .unproven, detail: "no canary is configured")
        }
        let host =
            switch canary.endpoint.host {
            case .name(let name): name
            case .address(let address, _): "\(address)"
            }
        return switch canary.statusName {
        case .up: ThisComputer.Facet(layer: .internet, finding: .works, detail: host)
        case .degraded: ThisComputer.Facet(layer: .internet, finding: .degraded, detail: host, cause: canary.cause)
        case .down, .unreachable: ThisComputer.Facet(layer: .internet, finding: .fails, detail: host, cause: canary.cause)
        case .unknown: ThisComputer.Facet(layer: .internet, finding: .unproven, detail: "no result yet")
        }
    }
}
