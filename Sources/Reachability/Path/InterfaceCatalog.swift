/// All interfaces as ``NetworkInterface`` values, computed from the snapshot and the evidence.
package struct InterfaceCatalog: Sendable {
    package private(set) var interfaces: [UInt32: NetworkInterface] = [:]
    /// The addresses of each interface, sorted.
    package private(set) var addresses: [UInt32: [Address]] = [:]
    private var masters: [UInt32: UInt32] = [:]

    package init() {}

    package init(_ snapshot: KernelSnapshot, evidence: [UInt32: InterfaceEvidence]) {
        update(snapshot, evidence: evidence, changed: Set(snapshot.links.keys))
    }

    /// Updates the catalog after changes of the given interfaces, their addresses or their evidence.
    package mutating func update(_ snapshot: KernelSnapshot, evidence: [UInt32: InterfaceEvidence], changed: Set<UInt32>) {
        let dependents = dependents(of: changed, snapshot)
        let indexes = dependents.isEmpty ? changed : changed.union(dependents)
        let sorted = indexes.count > Self.searchLimit ? Self.addresses(of: snapshot) : nil
        var ports: [UInt32: [Link]] = [:]
        for link in snapshot.links.values where link.master != 0 { ports[link.master, default: []].append(link) }
        for index in indexes {
            guard let link = snapshot.links[index] else {
                interfaces[index] = nil
                addresses[index] = nil
                masters[index] = nil
                continue
            }
            let kind = InterfaceClassifier.classify(
                link, evidence: evidence[index], among: snapshot.links, evidenceOf: { evidence[$0] }
            )
            let own = sorted.map { $0[index] ?? [] } ?? snapshot.addresses(of: index)
            masters[index] = link.master == 0 ? nil : link.master
            addresses[index] = own.isEmpty ? nil : own
            interfaces[index] = NetworkInterface(
                name: link.name, index: index, type: kind.type, isVirtual: kind.isVirtual, isExpensive: kind.isExpensive,
                level: LinkLevelMatrix.level(of: link, addresses: own, ports: Self.allPorts(of: index, ports)),
                addresses: Self.prefixes(own),
                evidence: kind.evidence, alternativeNames: link.alternativeNames
            )
        }
    }

    /// Returns the devices that depend on the given ones, directly or indirectly. These are the devices of which they are or were
    /// ports, and the devices that are stacked on them.
    private func dependents(of changed: Set<UInt32>, _ snapshot: KernelSnapshot) -> Set<UInt32> {
        var found: Set<UInt32> = []
        var latest = changed
        while !latest.isEmpty {
            var next: Set<UInt32> = []
            for index in latest {
                if let master = masters[index] { next.insert(master) }
                if let master = snapshot.links[index]?.master, master != 0 { next.insert(master) }
            }
            for link in snapshot.links.values where link.lower != 0 && latest.contains(link.lower) { next.insert(link.index) }
            latest = next.subtracting(found).subtracting(changed)
            found.formUnion(latest)
        }
        return found
    }

    /// Returns each prefix once. The kernel has an IPv4 address several times if the address has several peers.
    private static func prefixes(_ addresses: [Address]) -> [IPPrefix] {
        var prefixes: [IPPrefix] = []
        prefixes.reserveCapacity(addresses.count)
        for address in addresses where address.key.prefix != prefixes.last { prefixes.append(address.key.prefix) }
        return prefixes
    }

    /// The number of interfaces up to which searching for each one's addresses costs less than sorting all addresses.
    private static let searchLimit = 8

    private static func addresses(of snapshot: KernelSnapshot) -> [UInt32: [Address]] {
        var addresses: [UInt32: [Address]] = [:]
        for address in snapshot.addresses.values { addresses[address.key.interface, default: []].append(address) }
        for index in addresses.keys { addresses[index]?.sort { $0.key < $1.key } }
        return addresses
    }
}

extension InterfaceCatalog {
    /// Returns the ports of a device and the ports of those ports, as in a bridge over a bond. A stale set of links may contain a
    /// cycle.
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

/// The interfaces that have a default route, with their preference.
struct DefaultRoutes {
    /// The lowest metric of each interface's default routes.
    private(set) var metrics: [UInt32: UInt32] = [:]

    fileprivate mutating func add(_ interface: UInt32, metric: UInt32) {
        metrics[interface] = min(metrics[interface] ?? .max, metric)
    }
}

extension KernelSnapshot {
    /// The default routes by interface. This is a property, because an initializer would take ownership of the snapshot, and so
    /// copy all its tables.
    var defaults: DefaultRoutes {
        var defaults = DefaultRoutes()
        for key in defaultRoutes {
            for route in routes[key]?.list ?? [] where route.kind == .unicast {
                for hop in nextHops(of: route) { defaults.add(hop.interface, metric: key.metric) }
            }
        }
        return defaults
    }

    /// Returns the next hops of a route. If the kernel does not list the hops of the route's nexthop object (nexthop_compat_mode
    /// 0), they come from the object.
    func nextHops(of route: Route) -> [Route.NextHop] {
        let own = route.nextHops
        guard own.isEmpty, let object = nexthops[route.nexthopObject] else { return own }
        if let hop = object.hop { return [hop] }
        return object.group.compactMap { nexthops[$0.id]?.hop }
    }
}
