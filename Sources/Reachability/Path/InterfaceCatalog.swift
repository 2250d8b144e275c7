/// All interfaces as a person knows them, made of the snapshot and of what was read beside it.
package struct InterfaceCatalog: Sendable {
    package private(set) var interfaces: [UInt32: NetworkInterface] = [:]
    /// Per interface the addresses, in order.
    package private(set) var addresses: [UInt32: [Address]] = [:]

    package init() {}

    package init(_ snapshot: NetworkSnapshot, evidence: [UInt32: InterfaceEvidence]) {
        for address in snapshot.addresses.values { addresses[address.key.interface, default: []].append(address) }
        for index in addresses.keys { addresses[index]?.sort { $0.key < $1.key } }
        var ports: [UInt32: [Link]] = [:]
        for link in snapshot.links.values where link.master != 0 { ports[link.master, default: []].append(link) }
        for link in snapshot.links.values {
            let kind = InterfaceClassifier.classify(
                link, evidence: evidence[link.index], among: snapshot.links, evidenceOf: { evidence[$0] }
            )
            let own = addresses[link.index] ?? []
            interfaces[link.index] = NetworkInterface(
                name: link.name, index: link.index, type: kind.type, isVirtual: kind.isVirtual, isExpensive: kind.isExpensive,
                level: LinkLevelMatrix.level(of: link, addresses: own, ports: Self.allPorts(of: link.index, ports)),
                addresses: own.map(\.key.prefix), evidence: kind.evidence
            )
        }
    }
}

extension InterfaceCatalog {
    /// The ports of a device, and theirs: a bridge over a bond. A stale set of links may go round in circles.
    private static func allPorts(of index: UInt32, _ ports: [UInt32: [Link]]) -> [Link] {
        guard var found = ports[index] else { return [] }
        var seen: Set<UInt32> = [index]
        var next = 0
        while next < found.count {
            let port = found[next].index
            if seen.insert(port).inserted { found += ports[port] ?? [] }
            next += 1
        }
        return found
    }
}

/// Which interfaces have a default route, and how much it is preferred.
struct DefaultRoutes {
    /// The lowest metric of a default route by interface.
    private(set) var metrics: [UInt32: UInt32] = [:]

    init(_ snapshot: NetworkSnapshot) {
        for key in snapshot.defaultRoutes {
            for route in snapshot.routes[key]?.list ?? [] where route.kind == .unicast {
                for hop in snapshot.nextHops(of: route) {
                    metrics[hop.interface] = min(metrics[hop.interface] ?? .max, key.metric)
                }
            }
        }
    }
}

extension NetworkSnapshot {
    /// The next hops of a route, those of its nexthop object where the kernel does not repeat them (nexthop_compat_mode 0).
    func nextHops(of route: Route) -> [Route.NextHop] {
        let own = route.nextHops
        guard own.isEmpty, let object = nexthops[route.nexthopObject] else { return own }
        if let hop = object.hop { return [hop] }
        return object.group.compactMap { nexthops[$0.id]?.hop }
    }
}
