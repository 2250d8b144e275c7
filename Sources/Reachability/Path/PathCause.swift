/// Determines the cause of an unsatisfied path: the lowest failing layer of the most relevant interface
/// (docs/command-line.md, "Satisfied paths").
struct PathCause {
    private let snapshot: KernelSnapshot
    private let catalog: InterfaceCatalog
    private let configuration: MonitorConfiguration
    private let destinations: RouteDestinations

    init(
        _ snapshot: KernelSnapshot, _ catalog: InterfaceCatalog, _ configuration: MonitorConfiguration,
        _ destinations: RouteDestinations
    ) {
        self.snapshot = snapshot
        self.catalog = catalog
        self.configuration = configuration
        self.destinations = destinations
    }

    func find(_ choices: PathEvaluation.Choices, _ last: PathEvaluation.Selected?) -> Cause {
        if let last {
            // An interface that was renamed, and no longer has the required name, counts as removed.
            guard let interface = catalog.interfaces[last.index], configuration.allows(interface) else {
                return Cause(
                    .link, .noInterface, detail: "interface \(last.name) is gone", evidence: ["interface": .text(last.name)]
                )
            }
            return local(interface, choices) ?? route(choices, interface)
        }
        if case .named(let name) = configuration.selection, !catalog.interfaces.values.contains(where: { $0.hasName(name) }) {
            return Cause(.link, .noInterface, detail: "there is no interface \(name)", evidence: ["interface": .text(name)])
        }
        let candidates = catalog.interfaces.values.filter { $0.type != .loopback && configuration.allows($0) }
        let best = candidates.max { left, right in
            // A port has no path of its own: its bridge or bond has the relevant fault.
            if (left.level == .enslaved) != (right.level == .enslaved) { return left.level == .enslaved }
            if left.level != right.level { return left.level < right.level }
            if left.isVirtual != right.isVirtual { return left.isVirtual }
            return left.index > right.index
        }
        guard let best else {
            let detail =
                if case .named(let name) = configuration.selection {
                    "interface \(name) is the loopback interface, which leads to no network"
                } else {
                    "there is no interface \(selectionDescription)"
                }
            return Cause(.link, .noInterface, detail: detail)
        }
        return local(best, choices) ?? route(choices, best)
    }

    private var selectionDescription: String {
        switch configuration.selection {
        case .required(let type): "of type \(type.rawValue)"
        case .prohibited: "of a permitted type"
        case .any, .named: "other than loopback"
        }
    }

    /// Returns the fault of the link or of its addresses; `nil` if both are usable.
    private func local(_ interface: NetworkInterface, _ choices: PathEvaluation.Choices) -> Cause? {
        func cause(_ kind: InterfaceFault.Kind) -> Cause {
            let link = snapshot.links[interface.index].map {
                InterfaceFault.LinkState(operationalState: $0.operationalState.text, flags: $0.flags.rawValue)
            }
            let families = configuration.families
            return Cause(
                InterfaceFault(
                    kind, interface: interface.name, family: families.count == 1 ? families.first : nil, level: interface.level,
                    link: link))
        }
        switch interface.level {
        case .off: return cause(.off)
        case .noCarrier: return cause(.noCarrier)
        case .dormant: return cause(.dormant)
        case .degradedCarrier, .carrier, .degraded, .enslaved, .routable: break
        }
        let addresses = (catalog.addresses[interface.index] ?? []).filter { configuration.families.contains($0.address.family) }
        return addressFault(of: addresses).map { cause(.address($0)) }
    }

    private func route(_ choices: PathEvaluation.Choices, _ interface: NetworkInterface) -> Cause {
        // The more specific refusal is reported: a refusing route before a missing route.
        let refusals = IPAddress.Family.allCases.compactMap { family in
            choices[family]?.refusal.map { (family: family, code: refusal(family, errno: $0), errno: $0) }
        }
        guard let refusal = refusals.first(where: { $0.code != .noRoute }) ?? refusals.first else {
            let detail = "the kernel's route over interface \(interface.name) has no usable source address"
            return Cause(.address, .noAddress, detail: detail, evidence: ["interface": .text(interface.name)])
        }
        let evidence: [String: Cause.Evidence] = [
            "errno": .text(RouteRefusal(errno: refusal.errno).errnoName(refusal.errno)),
            "destination": .text("\(destinations[refusal.family])"),
        ]
        if refusal.code == .noRoute, hasDefaultRoute(refusal.family) {
            let detail = "there is no route: no policy rule leads to a default route that may be used"
            return Cause(.route, .noRoute, detail: detail, evidence: evidence)
        }
        return Cause(.route, refusal.code.code, detail: refusal.code.detail(of: "the default route"), evidence: evidence)
    }

    private func hasDefaultRoute(_ family: IPAddress.Family) -> Bool {
        snapshot.defaultRoutes.contains { key in key.family == family && snapshot.routes(key).contains { $0.kind == .unicast } }
    }
}

extension PathCause {
    // A rule of type unreachable returns the errno of a missing route (fib4_rule_action). If such a rule matches every packet,
    // the kernel evaluated no later rule, and the earlier ones found no route.
    private func refusal(_ family: IPAddress.Family, errno: Int32) -> RouteRefusal {
        let refusal = RouteRefusal(errno: errno)
        guard refusal == .noRoute else { return refusal }
        let unreachable: UInt8 = 7  // FR_ACT_UNREACHABLE
        let isStopped = snapshot.rules.contains { $0.family == family && $0.action == unreachable && $0.matchesEveryPacket }
        return isStopped ? .unreachable : .noRoute
    }
}

extension Link.OperationalState {
    /// The name of the case. Interpolation would need reflection.
    fileprivate var text: String {
        switch self {
        case .unknown: "unknown"
        case .notPresent: "notPresent"
        case .down: "down"
        case .lowerLayerDown: "lowerLayerDown"
        case .testing: "testing"
        case .dormant: "dormant"
        case .up: "up"
        }
    }
}

/// The reason why the kernel would not route a packet, from the errno of RTM_GETROUTE. connect(2) returns the same numbers.
package enum RouteRefusal: Hashable, Sendable {
    case noRoute
    case unreachable
    case prohibited
    case blackhole

    package init(errno: Int32) {
        switch errno {
        case 113: self = .unreachable  // EHOSTUNREACH
        case 13: self = .prohibited  // EACCES
        case 22: self = .blackhole  // EINVAL
        default: self = .noRoute  // ENETUNREACH and any other error of a table
        }
    }

    package var code: Cause.Code {
        switch self {
        case .noRoute: .noRoute
        case .unreachable: .routeUnreachable
        case .prohibited: .routeProhibited
        case .blackhole: .routeBlackhole
        }
    }

    package func detail(of subject: String) -> String {
        switch self {
        case .noRoute: "there is no route: \(subject) is missing"
        case .unreachable: "a route or rule of type unreachable refuses the destination"
        case .prohibited: "a route or rule of type prohibit refuses the destination"
        case .blackhole: "a route or rule of type blackhole refuses the destination"
        }
    }

    package func errnoName(_ errno: Int32) -> String {
        switch self {
        case .noRoute: errno == RouteAnswer.noRoute ? "ENETUNREACH" : "errno \(errno)"
        case .unreachable: "EHOSTUNREACH"
        case .prohibited: "EACCES"
        case .blackhole: "EINVAL"
        }
    }
}

/// Returns why an address cannot be a source, by its entries on all interfaces; `nil` if it can.
func sourceFault(of entries: [Address]) -> AddressFault? {
    if entries.contains(where: \.isUsable) { return nil }
    if entries.contains(where: { $0.flags.contains(.duplicate) }) { return .duplicate }
    return entries.isEmpty ? .missing : .tentative
}

/// Returns why none of an interface's addresses can be a source; `nil` if one can. Link-local IPv6 addresses do not count.
func addressFault(of addresses: [Address]) -> AddressFault? {
    let global = addresses.filter { !($0.address.family == .v6 && $0.address.isLinkLocal) }
    if global.contains(where: \.isUsable) { return nil }
    if addresses.contains(where: { $0.flags.contains(.duplicate) }) { return .duplicate }
    return global.contains { $0.flags.contains(.tentative) } ? .tentative : .missing
}
