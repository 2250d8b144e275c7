/// Everything that reaches a monitor from outside, as values: what a recording holds, and what a simulation draws.
///
/// A monitor is its machine and these inputs with their moments; nothing else decides what it says.
package enum MonitorInput: Hashable, Sendable {
    /// The sockets are open and joined. `seed` feeds every random draw; `isPolling` where no events come.
    case began(seed: UInt64, isPolling: Bool)
    /// A datagram of the event socket.
    case datagram([UInt8])
    /// Events were lost, and the socket has been drained.
    case overrun
    /// A datagram of the dump socket.
    case dump([UInt8])
    case dumpFailed(errno: Int32)
    /// The kernel's answer to RTM_GETROUTE, empty when it gave none.
    case routeReply(RouteQuery, [UInt8])
    /// The kernel's answer to RTM_GETNEIGH, empty when it gave none.
    case neighborReply(Neighbor.Key, [UInt8])
    case evidence(UInt32, InterfaceEvidence)
    case resolver(ResolverConfiguration)
    case lookup(LookupAnswer)
    case probe(ProbeResult)
    case resumed(nanosecondsAsleep: Int64)
    case namespaceGone
    case pollDue
    case targetAdded(TargetID, Endpoint, ProbeSettings)
    case targetRemoved(TargetID)
    /// Nothing more was to be read in this turn, or a deadline came.
    case turnEnded
}
