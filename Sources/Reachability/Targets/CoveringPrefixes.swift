/// The destination prefixes of all routes and rules, of every table.
///
/// Two destinations with the same longest covering prefix have the same covering prefixes, because prefixes that cover one address
/// contain each other. The kernel's lookup (ip-rule(8), ip-route(8)) compares a destination only with these prefixes. Its answer
/// is therefore the same for both destinations, with these exceptions:
/// - If a route has several next hops, the answer depends on the packet.
/// - The source address of an IPv6 packet depends on the complete destination (RFC 6724).
/// - An ICMP redirect changes the gateway of one destination.
struct CoveringPrefixes: Sendable {
    private struct Count: Hashable, Sendable {
        var all: Int32 = 0
        /// The number of routes whose next hop the kernel chooses for each packet.
        var spread: Int32 = 0
    }

    private var counts: [IPPrefix: Count] = [:]
    // The number of routes and rules by the length of their prefix, so that a search skips unused lengths.
    private var lengths4 = [Int32](repeating: 0, count: 33)
    private var lengths6 = [Int32](repeating: 0, count: 129)

    /// Whether a rule compares destination ports, so that the port belongs to a query.
    private(set) var usesPorts = false

    /// Counts the routes and rules of a snapshot.
    init(_ snapshot: KernelSnapshot) {
        for route in snapshot.allRoutes { count(route, by: 1) }
        countRules(of: snapshot, previous: [])
    }

    private var ruleDestinations: [IPPrefix] = []

    /// Returns the longest prefix that covers the address. `isSpread`: one of the covering routes has several next hops.
    func longest(covering address: IPAddress) -> (prefix: IPPrefix, isSpread: Bool) {
        var longest: IPPrefix?
        let isV4 = address.family == .v4
        var length = isV4 ? 32 : 128
        while length >= 0 {
            if (isV4 ? lengths4[length] : lengths6[length]) > 0 {
                let prefix = IPPrefix(IPPrefix(address, length: UInt8(length)).first, length: UInt8(length))
                if let count = counts[prefix] {
                    if longest == nil { longest = prefix }
                    if count.spread > 0 { return (prefix, true) }
                }
            }
            length -= 1
        }
        return (longest ?? IPPrefix(isV4 ? IPAddress(v4: 0) : IPAddress(v6: 0, 0), length: 0), false)
    }

    /// Returns the prefix of a route or rule that a change adds or removes; `nil` for other changes.
    static func prefix(of change: KernelChange) -> IPPrefix? {
        switch change {
        case .routeAdded(let route), .routeRemoved(let route): normalized(route.key.destination)
        default: nil
        }
    }

    /// Applies a change of a route. Changes of rules need ``rulesChanged(_:)``.
    mutating func apply(_ change: KernelChange) {
        switch change {
        case .routeAdded(let route): count(route, by: 1)
        case .routeRemoved(let route): count(route, by: -1)
        default: break
        }
    }

    /// Counts the rules again.
    mutating func rulesChanged(_ snapshot: KernelSnapshot) { countRules(of: snapshot, previous: ruleDestinations) }

    private mutating func countRules(of snapshot: KernelSnapshot, previous: [IPPrefix]) {
        for prefix in previous { count(prefix, isSpread: false, by: -1) }
        ruleDestinations = snapshot.rules.compactMap(\.destination).map(Self.normalized)
        for prefix in ruleDestinations { count(prefix, isSpread: false, by: 1) }
        usesPorts = snapshot.rules.contains { $0.destinationPorts != nil }
    }

    private mutating func count(_ route: Route, by step: Int32) {
        count(Self.normalized(route.key.destination), isSpread: route.isMultipath || route.nexthopObject != 0, by: step)
    }

    private mutating func count(_ prefix: IPPrefix, isSpread: Bool, by step: Int32) {
        var count = counts[prefix] ?? Count()
        count.all += step
        if isSpread { count.spread += step }
        counts[prefix] = count.all > 0 ? count : nil
        if prefix.address.family == .v4 { lengths4[Int(prefix.length)] += step } else { lengths6[Int(prefix.length)] += step }
    }

    private static func normalized(_ prefix: IPPrefix) -> IPPrefix { IPPrefix(prefix.first, length: prefix.length) }
}
