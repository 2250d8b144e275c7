/// One rtnetlink message as a value: what the decoder makes of a datagram, and what the machines understand.
package enum NetlinkEvent: Hashable, Sendable {
    case link(Link)
    case linkRemoved(UInt32)
    case address(Address)
    case addressRemoved(Address.Key)
    /// `replaces`: NLM_F_REPLACE, for which no RTM_DELROUTE of the former route comes.
    /// `isDead`: RTNH_F_DEAD on all next hops, in dumps that follow a link's loss closely, and for as long as a link has no carrier where
    /// `ignore_routes_with_linkdown` is set; such a route is absent.
    case route(Route, replaces: Bool = false, isDead: Bool = false)
    case routeRemoved(Route)
    /// `ignore_routes_with_linkdown` of an interface was set, to whatever.
    case linkdownPolicy(IPAddress.Family, interface: UInt32)
    case rule(Rule)
    case ruleRemoved(Rule)
    case neighbor(Neighbor)
    case neighborRemoved(Neighbor.Key)
    case nexthop(NexthopObject)
    case nexthopRemoved(UInt32)
    /// The last message of a dump, or the acknowledgement of a request: 0, or the kernel's errno as a positive number.
    case done(errno: Int32)
    /// A message that says nothing of the state: a bridge's port (family 7), wireless statistics, multicast routes.
    case ignored
    /// A message that could not be decoded.
    case malformed

    /// Whether something went that ways may lead over.
    var isRemoval: Bool {
        switch self {
        case .linkRemoved, .addressRemoved, .routeRemoved, .ruleRemoved, .nexthopRemoved: true
        default: false
        }
    }
}

/// What one message is part of.
package struct NetlinkMessage: Hashable, Sendable {
    package var event: NetlinkEvent
    /// The number of the request that it answers; 0 for events that nobody asked for.
    package var sequence: UInt32
    /// NLM_F_DUMP_INTR: the kernel's table changed while it was dumped.
    package var wasInterrupted: Bool
    /// How long a route is used from now on, where it has a lifetime and some of it is left.
    package var routeLifetime: Duration?

    package init(
        _ event: NetlinkEvent, sequence: UInt32 = 0, wasInterrupted: Bool = false, routeLifetime: Duration? = nil
    ) {
        self.event = event
        self.sequence = sequence
        self.wasInterrupted = wasInterrupted
        self.routeLifetime = routeLifetime
    }
}
