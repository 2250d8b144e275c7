@testable import Reachability

/// A snapshot as rows of text, one for each entry, in a format that the output of `ip -N -j` can be converted to.
struct SnapshotRows: Equatable {
    var links: Set<String> = []
    var addresses: Set<String> = []
    var routes: Set<String> = []
    var rules: Set<String> = []
    var nexthops: Set<String> = []

    init() {}

    init(_ snapshot: KernelSnapshot) {
        let name = { (index: UInt32) in snapshot.links[index]?.name ?? "#\(index)" }
        for link in snapshot.links.values {
            links.insert(
                words(
                    "\(link.index) \(link.name)", ("mtu", "\(link.mtu)"), ("state", "\(link.operationalState)".lowercased()),
                    ("up", link.flags.contains(.up) ? "yes" : nil), ("carrier", link.flags.contains(.lowerUp) ? "yes" : nil),
                    ("kind", link.kind), ("port", link.portKind), ("master", link.master == 0 ? nil : name(link.master)),
                    ("address", link.hardwareAddress.map { hexadecimal($0) }.joined(separator: ":"))))
        }
        for address in snapshot.addresses.values {
            addresses.insert(
                words(
                    name(address.key.interface), ("", "\(address.key.prefix)"), ("peer", address.peer.map { "\($0)" }),
                    ("scope", "\(address.scope)"), ("tentative", address.flags.contains(.tentative) ? "yes" : nil),
                    ("duplicate", address.flags.contains(.duplicate) ? "yes" : nil),
                    ("deprecated", address.flags.contains(.deprecated) ? "yes" : nil)))
        }
        for route in snapshot.allRoutes {
            let hops = route.nextHops.map { hop in
                words(
                    name(hop.interface), ("via", hop.gateway.map { "\($0)" }),
                    ("weight", route.isMultipath ? "\(hop.weight)" : nil), ("onlink", hop.isOnLink ? "yes" : nil))
            }
            routes.insert(
                words(
                    "\(route.key.destination)", ("table", "\(route.key.table)"), ("metric", "\(route.key.metric)"),
                    ("from", route.key.source.map { "\($0)" }), ("tos", "\(route.key.typeOfService)"),
                    ("type", "\(route.kind.rawValue)"), ("proto", "\(route.origin)"), ("scope", "\(route.scope)"),
                    ("src", route.preferredSource.map { "\($0)" }),
                    ("nhid", route.nexthopObject == 0 ? nil : "\(route.nexthopObject)"),
                    ("to", hops.sorted().joined(separator: " + "))))
        }
        for rule in snapshot.rules {
            let range = { (range: ClosedRange<UInt16>?) in range.map { "\($0.lowerBound)-\($0.upperBound)" } }
            rules.insert(
                words(
                    "\(rule.family) \(rule.priority)", ("not", rule.isInverted ? "yes" : nil),
                    ("from", rule.source.map { "\($0)" }), ("to", rule.destination.map { "\($0)" }),
                    ("iif", rule.incomingInterface), ("oif", rule.outgoingInterface),
                    ("mark", rule.markMask == 0 ? nil : "\(rule.mark)/\(rule.markMask)"),
                    ("tos", rule.typeOfService == 0 ? nil : "\(rule.typeOfService)"),
                    ("uid", rule.users.map { "\($0.lowerBound)-\($0.upperBound)" }),
                    ("ipproto", rule.ipProtocol == 0 ? nil : "\(rule.ipProtocol)"), ("sport", range(rule.sourcePorts)),
                    ("dport", range(rule.destinationPorts)), ("tun", rule.tunnel == 0 ? nil : "\(rule.tunnel)"),
                    ("l3mdev", rule.isL3MasterDevice ? "yes" : nil), ("action", rule.action == 1 ? nil : "\(rule.action)"),
                    ("goto", rule.target == 0 ? nil : "\(rule.target)"), ("table", rule.table == 0 ? nil : "\(rule.table)"),
                    ("suppress", rule.suppressedPrefixLength.map { "\($0)" }),
                    ("group", rule.suppressedGroup.map { "\($0)" })))
        }
        for object in snapshot.nexthops.values {
            let members = object.group.map { "\($0.id)*\($0.weight)" }.joined(separator: "+")
            nexthops.insert(
                words(
                    "\(object.id)", ("dev", object.hop.map { name($0.interface) }),
                    ("via", object.hop?.gateway.map { "\($0)" }), ("onlink", object.hop?.isOnLink ?? false ? "yes" : nil),
                    ("blackhole", object.isBlackhole ? "yes" : nil), ("group", members.isEmpty ? nil : members)))
        }
    }
}

/// `subject KEY VALUE …` with the pairs that have a value.
func words(_ subject: String, _ pairs: (key: String, value: String?)...) -> String {
    pairs.reduce(subject) { row, pair in
        pair.value.map { pair.key.isEmpty ? "\(row) \($0)" : "\(row) \(pair.key) \($0)" } ?? row
    }
}

private func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16)
    return digits.count == 1 ? "0" + digits : digits
}
