/// Why a path is unsatisfied: the lowest failing layer of the interface that matters most (contract, "Cause of an unsatisfied
/// path").
struct PathCause {
    private let snapshot: Kernel.Snapshot
    private let catalog: InterfaceCatalog
    private let configuration: MonitorConfiguration
    private let destinations: RouteDestinations

    init(
        _ snapshot: Kernel.Snapshot, _ catalog: InterfaceCatalog, _ configuration: MonitorConfiguration,
        _ destinations: RouteDestinations
    ) {
        self.snapshot = snapshot
        self.catalog = catalog
        self.configuration = configuration
        self.destinations = destinations
    }

    func find(_ choices: PathEvaluation.Choices, _ last: PathEvaluation.Selected?) -> Cause {
        if let last {
            // One that was renamed away from the name that is wanted is gone as well.
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
            // A port has no path of its own: what is wrong is wrong with its bridge or bond.
            if (left.level == .enslaved) != (right.level == .enslaved) { return left.level == .enslaved }
            if left.level != right.level { return left.level < right.level }
            if left.isVirtual != right.isVirtual { return left.isVirtual }
            return left.index > right.index
        }
        guard let best else {
            return Cause(.link, .noInterface, detail: "there is no interface \(wanted)")
        }
        return local(best, choices) ?? route(choices, best)
    }

    private var wanted: String {
        switch configuration.selection {
        case .required(let type): "of type \(type.rawValue)"
        case .prohibited: "of a permitted type"
        case .any, .named: "but loopback"
        }
    }

    /// The link's or its addresses' fault; `nil` when both are well.
    private func local(_ interface: NetworkInterface, _ choices: PathEvaluation.Choices) -> Cause? {
        let name = interface.name
        func cause(_ layer: Cause.Layer, _ code: Cause.Code, _ detail: String) -> Cause {
            var evidence: [String: Cause.Evidence] = ["interface": .text(name), "level": .text(interface.level.rawValue)]
            if let link = snapshot.links[interface.index] {
                evidence["operstate"] = .text(link.operationalState.text)
                evidence["flags"] = .text("0x" + String(link.flags.rawValue, radix: 16))
            }
            return Cause(layer, code, detail: detail, evidence: evidence)
        }
        switch interface.level {
        case .off: return cause(.link, .interfaceDown, "interface \(name) is switched off")
        case .noCarrier: return cause(.link, .noCarrier, "interface \(name) has no carrier")
        case .dormant: return cause(.link, .dormant, "interface \(name) has carrier but waits for authentication")
        case .degradedCarrier, .carrier, .degraded, .enslaved, .routable: break
        }
        let addresses = (catalog.addresses[interface.index] ?? []).filter { configuration.families.contains($0.address.family) }
        let sources = addresses.filter { $0.isUsable && !($0.address.family == .v6 && $0.address.isLinkLocal) }
        guard sources.isEmpty else { return nil }
        if addresses.contains(where: { $0.flags.contains(.duplicate) }) {
            return cause(.address, .duplicateAddress, "an address of interface \(name) is in use by another host")
        }
        if addresses.contains(where: { $0.flags.contains(.tentative) && !$0.address.isLinkLocal }) {
            return cause(.address, .tentativeAddress, "the addresses of interface \(name) are still being checked for duplicates")
        }
        return cause(.address, .noAddress, "interface \(name) has no usable address")
    }

    private func route(_ choices: PathEvaluation.Choices, _ interface: NetworkInterface) -> Cause {
        // The family whose refusal says most: a route that refuses before none at all.
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
    // A rule of type unreachable gives the errno of a missing route (fib4_rule_action). Where it takes every packet, nothing that
    // stands behind it was asked, and what stands before had no answer.
    private func refusal(_ family: IPAddress.Family, errno: Int32) -> RouteRefusal {
        let refusal = RouteRefusal(errno: errno)
        guard refusal == .noRoute else { return refusal }
        let unreachable: UInt8 = 7  // FR_ACT_UNREACHABLE
        let isStopped = snapshot.rules.contains { $0.family == family && $0.action == unreachable && $0.takesEveryPacket }
        return isStopped ? .unreachable : .noRoute
    }
}

extension Link.OperationalState {
    /// The name of the case, without the reflection that an interpolation takes.
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

/// Why the kernel would not route, from the errno of RTM_GETROUTE: the same numbers that connect(2) gives.
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
        default: self = .noRoute  // ENETUNREACH and what else a table may say
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
        case .unreachable: "a route or rule of type unreachable stands in the way"
        case .prohibited: "a route or rule of type prohibit stands in the way"
        case .blackhole: "a route or rule of type blackhole stands in the way"
        }
    }

    package func errnoName(_ errno: Int32) -> String {
        switch self {
        case .noRoute: errno == 101 ? "ENETUNREACH" : "errno \(errno)"
        case .unreachable: "EHOSTUNREACH"
        case .prohibited: "EACCES"
        case .blackhole: "EINVAL"
        }
    }
}
