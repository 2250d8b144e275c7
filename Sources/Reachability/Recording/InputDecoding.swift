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
