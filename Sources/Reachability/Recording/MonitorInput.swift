/// All external inputs of a monitor, as values. Recordings contain them, and simulations generate them.
///
/// The machine and these inputs with their moments completely determine a monitor's events.
package enum MonitorInput: Hashable, Sendable {
    /// The sockets are open and have joined their groups. `seed` feeds every random draw; `isPolling` means that no events will
    /// arrive.
    case began(seed: UInt64, isPolling: Bool)
    /// A datagram of the event socket.
    case datagram([UInt8])
    /// Events were lost, and the socket has been drained.
    case overrun
    /// A datagram of the dump socket.
    case dump([UInt8])
    case dumpFailed(errno: Int32)
    /// The kernel's answer to RTM_GETROUTE; empty if the kernel did not answer.
    case routeReply(RouteQuery, [UInt8])
    /// The kernel's answer to RTM_GETNEIGH; empty if the kernel did not answer.
    case neighborReply(Neighbor.Key, [UInt8])
    case evidence(UInt32, InterfaceEvidence)
    case resolver(ResolverConfiguration)
    case lookup(LookupAnswer)
    case probe(ProbeResult)
    /// The outcome of asking whether a host is alive.
    case hostReply(HostQuery, HostReply)
    /// A reply of a search for answers from behind a first hop.
    indirect case searchReply(Neighbor.Key, HopSearchReply)
    /// The packet counters of an interface; `nil` if the kernel did not answer.
    case counters(UInt32, LinkCounters?)
    /// The outcome of a connection that another part of the program made.
    case passiveReport(PassiveReport)
    /// The number of probes that the process's descriptors allow at the same time.
    case probeLimit(Int)
    case resumed(nanosecondsAsleep: Int64)
    case namespaceGone
    case pollDue
    case targetAdded(TargetID, Endpoint, ProbeSettings)
    case targetRemoved(TargetID)
    /// The first target is about to be removed, and the other one to be added in its place.
    case targetReplaced(TargetID, by: TargetID)
    /// The turn has no more input, or a deadline is reached.
    case turnEnded
}
