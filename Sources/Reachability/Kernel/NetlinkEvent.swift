/// One rtnetlink message as a value: the decoder's output and the machines' input.
package enum NetlinkEvent: Hashable, Sendable {
    case link(Link)
    case linkRemoved(UInt32)
    case address(Address)
    case addressRemoved(Address.Key)
    /// `replaces` is NLM_F_REPLACE: the kernel sends no RTM_DELROUTE for the former route.
    /// `isDead` is RTNH_F_DEAD on all next hops. The kernel sets it in dumps that closely follow a link's loss, and while a link
    /// has no carrier if `ignore_routes_with_linkdown` is set. Such a route counts as absent.
    case route(Route, replaces: Bool = false, isDead: Bool = false)
    case routeRemoved(Route)
    /// `ignore_routes_with_linkdown` of an interface was set, to either value.
    case linkdownPolicy(IPAddress.Family, interface: UInt32)
    case rule(Rule)
    case ruleRemoved(Rule)
    case neighbor(Neighbor)
    case neighborRemoved(Neighbor.Key)
    case nexthop(NexthopObject)
    case nexthopRemoved(UInt32)
    /// The last message of a dump, or the acknowledgement of a request: 0, or the kernel's errno as a positive number.
    case done(errno: Int32)
    /// A message that does not change the state: a bridge's port (family 7), wireless statistics, multicast routes.
    case ignored
    /// A message that could not be decoded.
    case malformed

    /// Whether the message removes an entry over which routes may lead.
    var isRemoval: Bool {
        switch self {
        case .linkRemoved, .addressRemoved, .routeRemoved, .ruleRemoved, .nexthopRemoved: true
        default: false
        }
    }
}

/// A netlink message with its envelope.
package struct NetlinkMessage: Hashable, Sendable {
    package var event: NetlinkEvent
    /// The number of the request that the message answers; 0 for events without a request.
    package var sequence: UInt32
    /// NLM_F_DUMP_INTR: the kernel's table changed while it was dumped.
    package var wasInterrupted: Bool
    /// The remaining lifetime of a route; `nil` if it has none or no time remains.
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
