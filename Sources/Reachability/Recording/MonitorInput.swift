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
    /// A job has reported.
    indirect case heartbeat(TargetID, HeartbeatReport)
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

extension MonitorInput {
    /// The input for the machine: datagrams are decoded, other values are passed unchanged.
    var event: MonitorMachine.Event {
        switch self {
        case .began(let seed, let isPolling): .path(.began(seed: seed, isPolling: isPolling))
        case .datagram(let bytes): .path(.messages(NetlinkDecoder.decode(bytes)))
        case .overrun: .path(.overrun)
        case .dump(let bytes): .path(.dump(NetlinkDecoder.decode(bytes)))
        case .dumpFailed(let errno): .path(.dumpFailed(errno: errno))
        case .routeReply(let query, let bytes):
            .route(query, RouteAnswer(NetlinkDecoder.decode(bytes), to: query) ?? .unanswered)
        case .neighborReply(let key, let bytes): .neighbor(key, NeighborAnswer(NetlinkDecoder.decode(bytes)))
        case .evidence(let index, let evidence): .path(.evidence(index, evidence))
        case .resolver(let configuration): .path(.resolver(configuration))
        case .lookup(let answer): .lookup(answer)
        case .probe(let result): .probe(result)
        case .hostReply(let query, let reply): .hostReply(query, reply)
        case .searchReply(let hop, let reply): .searchReply(hop, reply)
        case .counters(let interface, let counters): .counters(interface, counters)
        case .passiveReport(let report): .passiveReport(report)
        case .heartbeat(let id, let report): .heartbeat(id, report)
        case .probeLimit(let limit): .probeLimit(limit)
        case .resumed(let asleep): .path(.resumed(nanosecondsAsleep: asleep))
        case .namespaceGone: .path(.namespaceGone)
        case .pollDue: .path(.pollDue)
        case .targetAdded(let id, let endpoint, let settings): .targetAdded(id, endpoint, settings)
        case .targetRemoved(let id): .targetRemoved(id)
        case .targetReplaced(let id, let other): .targetReplaced(id, by: other)
        case .turnEnded: .turnEnded
        }
    }
}
