internal import Pacing

/// The knowledge about hosts on the way to targets, shared by all targets: whether a first hop is alive, whether it answers queries,
/// and what routers have reported.
///
/// The neighbor table alone does not show that a gateway is alive: the entry of one that has died remains REACHABLE for half a
/// minute. An answer does: of the gateway itself (``HostQuery``), or of a router behind it. An answer of TCP is weaker: this machine's
/// packet filter can reset or redirect the connection, and then nothing came over the gateway. Therefore the gateway's own answer or
/// silence has precedence over such a proof.
struct HopBook: Sendable {
    /// The minimum time between two queries of the same host, in nanoseconds. Linux answers one datagram per second, after six at once
    /// (icmp_ratelimit), and every connection.
    static let queryGap: Int64 = 300_000_000
    /// The time for which a router's report about one target is evidence for others in nanoseconds.
    static let reportLifetime: Int64 = 30_000_000_000
    /// The time in nanoseconds for which a router that reports one unreachable host may have no message left for others. Linux sends
    /// a client six messages at once, and then one per second. Each silent probe uses up several, because a router reports each packet
    /// that waited for the host. The time is that of two probes.
    static let exhaustionTime: Int64 = 6_200_000_000
    /// The time in nanoseconds for which a host's silence to datagrams proves nothing, after a packet that may have drawn one of its ICMP
    /// messages.
    static let limitTime: Int64 = 60_000_000_000
    /// The maximum number of networks with reports.
    static let reportLimit = 4_096
    /// The maximum number of ports of a network with reports.
    private static let portLimit = 4
    /// The maximum number of hosts.
    static let recordLimit = 16_384
    /// The number of hosts from which further ones on a link are not asked until they are silent.
    static let baselineLimit = 8_192
    /// The minimum time between two queries of a silent hop whose targets answer, in nanoseconds.
    static let revivalGap: Int64 = 1_000_000_000
    /// The time for which the link-layer address of an answering server is known without asking the kernel again, in nanoseconds.
    static let linkAddressLifetime: Int64 = 60_000_000_000
    /// The minimum time between two counts of packets that this machine drops, in nanoseconds. They would disturb each other.
    static let countGap: Int64 = 1_000_000_000
    /// The time for which a host where this machine dropped packets has precedence for the next count, in nanoseconds.
    private static let recountTime: Int64 = 10_000_000_000
    /// The maximum time until a reply, in nanoseconds. A query without a reply is then sent again.
    static let replyLimit: Int64 = 2_000_000_000

    /// A target's request for the state of a host.
    struct Request: Hashable, Sendable {
        var query: HostQuery
        /// Evidence from before this time does not count, in nanoseconds.
        var since: Int64
        /// The target's address and port, about which a router may have reported something.
        var address: IPAddress
        var port: UInt16
        /// The first hop to the target.
        var hop: Neighbor.Key
    }

    /// A sign of life of a first hop, other than its answer to a query.
    enum Proof: Hashable, Sendable {
        /// A target has accepted or refused a connection, or reported something itself. This machine may have done so in its name.
        case target(IPAddress, port: UInt16)
        /// A router behind the hop has sent an ICMP message.
        case router
    }

    /// The state of a host, as the answer to a request.
    struct State: Hashable, Sendable {
        /// Whether the host has answered a query since the time of the request, or a router behind it has reported something.
        var isAlive: Bool
        /// Whether a target behind the host, or the host itself, has answered a connection since the time of the request.
        var isUsed = false
        /// The reply to the last query; `nil` if none was needed.
        var reply: HostReply?
        /// Whether the host has answered a query at an earlier time.
        var hasAnswered: Bool
        /// Whether the silence to the query may come from the host's limit of ICMP messages: it has answered datagrams alone, and other
        /// packets may have drawn its messages within ``limitTime``.
        var mayBeLimited = false
        /// The time of the first query since the last answer; `nil` if the last one was answered.
        var silentSince: Int64?
        /// The link-layer address of a server on the link when it last answered a connection; empty if it is not known.
        var linkAddress: [UInt8] = []
        /// A router's recent report about another target of the same network behind the same first hop.
        var report: Report?
        /// A router's report within ``exhaustionTime`` that it cannot reach another host of the same network.
        var hostReport: Report?
        /// The hop's own report within ``reportLifetime`` that it has no route to another network.
        var routeReport: Report?

        /// Whether the host usually answers queries, and does not now.
        var isSilent: Bool { !isAlive && hasAnswered && !mayBeLimited && reply?.outcome == .silent }
    }

    /// An ICMP message of a router about one target.
    struct Report: Hashable, Sendable {
        let target: IPAddress
        /// The port of the attempt.
        let port: UInt16
        let code: Cause.Code
        let reporter: ProbeResult.Reporter
        let time: Int64

        /// The destinations that the report may concern: a host that a router cannot reach says nothing of others.
        fileprivate var prefix: IPPrefix { HopBook.prefixes(of: target)[code == .hostUnreachable ? 1 : 0] }
        /// Whether the report may concern other ports.
        var isGeneral: Bool { code != .portFiltered }
    }

    /// The reports about one port of a network, without a gap of more than ``reportLifetime``.
    private struct Reports: Sendable {
        var last: Report
        /// The last answer of a target of the network at the reported port, since the first report.
        var answeredAtPort: Int64?
        /// The last answer of a target of the network at another port, since the first report.
        var answeredAtOthers: Int64?

        func isRecent(_ time: Int64?, at now: Int64) -> Bool { time.map { now - $0 < HopBook.reportLifetime } ?? false }

        /// Returns whether the last report counts for a silent target.
        func apply(to address: IPAddress, port: UInt16, at now: Int64) -> Bool {
            let isOwn = last.target == address && last.port == port
            guard isRecent(last.time, at: now), !isOwn, !isRecent(answeredAtPort, at: now) else { return false }
            return port == last.port || (last.isGeneral && !isRecent(answeredAtOthers, at: now))
        }
    }

    private struct Record: Sendable {
        var lastAlive: Int64?
        var lastUsed: Int64?
        var lastAsked: Int64?
        var reply: HostReply?
        var hasAnswered = false
        /// Whether the host has answered a connection, whose answers have no limit.
        var answersConnections = false
        /// The last time at which a packet may have drawn an ICMP message of the host: a silent probe over it, or a report.
        var lastDrawn: Int64?
        /// ``lastDrawn`` before the last query.
        var drawnBefore: Int64?
        var silentSince: Int64?
        var linkAddress: [UInt8] = []
        /// The time at which the link-layer address was asked for.
        var linkAddressAsked: Int64?
        var waiting: [(target: TargetID, request: Request)] = []
    }

    private struct ReportKey: Hashable, Sendable {
        let hop: Neighbor.Key
        let prefix: IPPrefix
    }

    private var records: [Neighbor.Key: Record] = [:]
    // The reports about each network, by port. Most networks have one.
    private var reports: [ReportKey: [Reports]] = [:]
    // The last reports about unreachable hosts of each network, of at most two hosts.
    private var hostReports: [ReportKey: [Report]] = [:]
    // The last reports of first hops that they have no route, and the time at which a target behind the hop has answered since the first.
    private var routeReports: [Neighbor.Key: (last: Report, answered: Int64?)] = [:]

    /// The time of the last count of packets that this machine drops.
    private var lastCount: Int64?
    /// The host where one count has shown drops, which the next one must confirm, and the time of the first.
    private var recount: (host: Neighbor.Key, since: Int64)?

    /// The number of hosts of which something is known.
    var hostCount: Int { records.count }

    /// Whether a target waits for a host's reply.
    var isWaited: Bool { records.values.contains { !$0.waiting.isEmpty } }

    /// Returns the state of a host if it is known; `nil` if the target must wait for a reply. `query` is the query that must be sent; `nil` for
    /// none.
    mutating func state(_ request: Request, for target: TargetID, at now: Int64) -> (state: State?, query: HostQuery?) {
        let host = request.query.host
        if records.count >= Self.recordLimit { records = records.filter { !$0.value.waiting.isEmpty } }
        var record = records.removeValue(forKey: host) ?? Record()
        defer {
            record.lastDrawn = now
            records[host] = record
        }
        if let state = state(record, request, at: now) { return (state, nil) }
        record.waiting.append((target, request))
        if record.reply == nil, let asked = record.lastAsked, now - asked < Self.replyLimit {
            // Another target's packets have been drawing messages too.
            if record.waiting[0].target != target { record.drawnBefore = now }
            return (nil, nil)
        }
        (record.lastAsked, record.reply, record.drawnBefore) = (now, nil, record.lastDrawn)
        return (nil, counting(request, at: now))
    }

    /// Returns the query of a request. With it, the packets are counted that this machine drops at the silent port, for one host at a time.
    private mutating func counting(_ request: Request, at now: Int64) -> HostQuery {
        var query = request.query
        guard query.host.address == request.address, lastCount.map({ now - $0 >= Self.countGap }) ?? true else { return query }
        if let recount, now - recount.since >= Self.recountTime { self.recount = nil }
        guard recount.map({ $0.host == query.host }) ?? true else { return query }
        (lastCount, query.port) = (now, request.port)
        return query
    }

    // A connection over the host is not enough: the host is asked too.
    private func state(_ record: Record, _ request: Request, at now: Int64) -> State? {
        let isAlive = record.lastAlive.map { $0 >= request.since } ?? false
        let isReplyRecent = record.lastAsked.map { $0 >= request.since || now - $0 < Self.queryGap } ?? false
        guard isAlive || (isReplyRecent && record.reply != nil) else { return nil }
        return state(record, request, isAlive: isAlive || record.reply?.outcome == .answered, at: now)
    }

    private func state(_ record: Record, _ request: Request, isAlive: Bool, at now: Int64) -> State {
        State(
            isAlive: isAlive, isUsed: record.lastUsed.map { $0 >= request.since } ?? false, reply: record.reply,
            hasAnswered: record.hasAnswered,
            mayBeLimited: !record.answersConnections
                && (record.drawnBefore.map { (record.lastAsked ?? now) - $0 < Self.limitTime } ?? false),
            silentSince: record.silentSince, linkAddress: record.linkAddress,
            report: report(about: request.address, port: request.port, behind: request.hop, at: now),
            hostReport: hostReport(beside: request.address, behind: request.hop, at: now),
            routeReport: routeReport(beside: request.address, behind: request.hop, at: now))
    }

    /// Notes a sign of life of a hop. A target that answers also contradicts what routers have reported about its network.
    ///
    /// - Returns: whether the hop must be asked, because it is not known yet whether it answers queries, or whether it does again.
    mutating func noteAlive(_ hop: Neighbor.Key, by proof: Proof, at now: Int64) -> Bool {
        var limit = Self.recordLimit
        if case .target(let address, let port) = proof {
            if address == hop.address { limit = Self.baselineLimit }
            refute(address, port: port, behind: hop, at: now)
        }
        // Every answer of a target comes here: the record is found once.
        if let index = records.index(forKey: hop) {
            if case .router = proof { records.values[index].lastAlive = now } else { records.values[index].lastUsed = now }
            return records.values[index].silentSince == nil ? false : mustAskAgain(hop, at: now)
        }
        guard records.count < limit else { return false }
        var record = Record(lastAsked: now)
        if case .router = proof { record.lastAlive = now } else { record.lastUsed = now }
        records[hop] = record
        return true
    }

    // A hop that is silent once may be alive again. Unless that is known, its next silence proves nothing.
    private mutating func mustAskAgain(_ hop: Neighbor.Key, at now: Int64) -> Bool {
        guard let record = records[hop], record.silentSince != nil, record.waiting.isEmpty, record.reply != nil,
            record.lastAsked.map({ now - $0 >= Self.revivalGap }) ?? true
        else { return false }
        records[hop]?.lastAsked = now
        records[hop]?.reply = nil
        records[hop]?.drawnBefore = record.lastDrawn
        return true
    }

    /// Returns whether the kernel must be asked for the link-layer address of a server on the link that has just answered.
    mutating func mustLearn(_ host: Neighbor.Key, at now: Int64) -> Bool {
        guard let index = records.index(forKey: host) else { return false }
        if let asked = records.values[index].linkAddressAsked, now - asked < Self.linkAddressLifetime { return false }
        records.values[index].linkAddressAsked = now
        return true
    }

    /// Stores the link-layer address of a server that has just answered.
    mutating func learn(_ host: Neighbor.Key, _ answer: NeighborAnswer) {
        if !answer.isSilent { records[host]?.linkAddress = answer.linkAddress }
    }

    /// Stores the reply of a host. Returns the targets that waited for it, with its state, in order.
    mutating func receive(_ query: HostQuery, _ reply: HostReply, at now: Int64) -> [(target: TargetID, state: State)] {
        if let drops = reply.drops {
            // The second count that shows drops confirms the first.
            recount = drops.place == nil || recount?.host == query.host ? nil : (query.host, now)
        }
        guard var record = records[query.host] else { return [] }
        let waiting = record.waiting
        record.waiting = []
        record.reply = reply
        switch reply.outcome {
        case .answered:
            record.hasAnswered = true
            if reply.question == .connection { record.answersConnections = true }
            record.lastAlive = now
            record.silentSince = nil
        case .silent: record.silentSince = record.silentSince ?? record.lastAsked
        case .reported, .refused: break
        }
        records[query.host] = record
        return waiting.map { entry in
            let isAlive = record.lastAlive.map { $0 >= entry.request.since } ?? false
            return (entry.target, state(record, entry.request, isAlive: isAlive, at: now))
        }
    }

    /// Forgets everything about the hosts behind an interface, which may now be attached to another network.
    mutating func forget(_ interface: UInt32) {
        records = records.filter { $0.key.interface != interface || !$0.value.waiting.isEmpty }
        for host in records.keys where host.interface == interface { records[host]?.hasAnswered = false }
        reports = reports.filter { $0.key.hop.interface != interface }
        hostReports = hostReports.filter { $0.key.hop.interface != interface }
        routeReports = routeReports.filter { $0.key.interface != interface }
    }

    /// Forgets everything after a suspend: the machine may be elsewhere.
    mutating func forgetAll() {
        records = records.filter { !$0.value.waiting.isEmpty }
        (reports, hostReports, routeReports) = ([:], [:], [:])
    }

    // MARK: Reports

    /// Stores a router's report about a target behind the hop.
    mutating func note(_ report: Report, behind hop: Neighbor.Key) {
        if report.code == .hostUnreachable { noteUnreachableHost(report, behind: hop) }
        if report.code == .netUnreachable, report.reporter.offender == hop.address {
            if routeReports.count >= Self.reportLimit { routeReports = [:] }
            let former = routeReports[hop].flatMap { report.time - $0.last.time < Self.reportLifetime ? $0 : nil }
            routeReports[hop] = (report, former?.answered)
        }
        records[hop]?.lastDrawn = report.time
        if reports.count >= Self.reportLimit {
            reports = reports.filter { $0.value.contains { report.time - $0.last.time < Self.reportLifetime } }
            if reports.count >= Self.reportLimit { reports = [:] }
        }
        let key = ReportKey(hop: hop, prefix: report.prefix)
        var ports = reports.removeValue(forKey: key) ?? []
        if let index = ports.firstIndex(where: { $0.last.port == report.port }) {
            var former = ports.remove(at: index)
            let isContinued = report.time - former.last.time < Self.reportLifetime
            former.last = report
            ports.append(isContinued ? former : Reports(last: report))
        } else {
            ports.append(Reports(last: report))
        }
        reports[key] = ports.suffix(Self.portLimit)
    }

    // A target has answered. The reports about its network do not count for the answered port for ``reportLifetime``, and reports
    // about another port count for that port only.
    private mutating func refute(_ address: IPAddress, port: UInt16, behind hop: Neighbor.Key, at now: Int64) {
        guard !reports.isEmpty else { return }
        if !routeReports.isEmpty { routeReports[hop]?.answered = now }
        for prefix in Self.prefixes(of: address) { refute(port, ReportKey(hop: hop, prefix: prefix), at: now) }
    }

    private mutating func refute(_ port: UInt16, _ key: ReportKey, at now: Int64) {
        guard var ports = reports[key] else { return }
        for index in ports.indices {
            if ports[index].last.port == port {
                ports[index].answeredAtPort = now
            } else {
                ports[index].answeredAtOthers = now
            }
        }
        reports[key] = ports
    }

    /// Returns what a router has reported recently about another port of the same host, or another target of the same /24 or /64
    /// behind the same hop. A report about the same port has precedence.
    func report(about address: IPAddress, port: UInt16, behind hop: Neighbor.Key, at now: Int64) -> Report? {
        guard !reports.isEmpty else { return nil }
        let ports = Self.prefixes(of: address).flatMap { reports[ReportKey(hop: hop, prefix: $0)] ?? [] }
            .filter { $0.apply(to: address, port: port, at: now) }
        return (ports.last { $0.last.port == port } ?? ports.last)?.last
    }

    private mutating func noteUnreachableHost(_ report: Report, behind hop: Neighbor.Key) {
        if hostReports.count >= Self.reportLimit { hostReports = [:] }
        let key = ReportKey(hop: hop, prefix: report.target.network)
        let others = (hostReports[key] ?? []).filter { $0.target != report.target }
        hostReports[key] = others.suffix(1) + [report]
    }

    /// Returns the last report that another host of the same network cannot be reached, if it is recent.
    private func hostReport(beside address: IPAddress, behind hop: Neighbor.Key, at now: Int64) -> Report? {
        guard !hostReports.isEmpty else { return nil }
        let reports = hostReports[ReportKey(hop: hop, prefix: address.network)] ?? []
        return reports.last { $0.target != address && now - $0.time < Self.exhaustionTime }
    }

    /// Returns the hop's own recent report that it has no route to another network, unless a target has answered over it meanwhile.
    private func routeReport(beside address: IPAddress, behind hop: Neighbor.Key, at now: Int64) -> Report? {
        guard let found = routeReports[hop], found.last.target != address, now - found.last.time < Self.reportLifetime,
            found.answered.map({ now - $0 >= Self.reportLifetime }) ?? true
        else { return nil }
        return found.last
    }

    /// The network and the host of an address.
    private static func prefixes(of address: IPAddress) -> [IPPrefix] {
        [address.network, IPPrefix(address, length: address.family == .v4 ? 32 : 128)]
    }
}
