internal import Pacing

/// The knowledge about hosts on the way to targets, shared by all targets: whether a first hop is alive, whether it answers queries,
/// and what routers have reported.
///
/// The neighbor table alone does not show that a gateway is alive: the entry of one that has died remains REACHABLE for half a
/// minute. An answer does: of the gateway itself (``HostQuery``), or of any target or router behind it.
struct HopBook: Sendable {
    /// The minimum time between two queries of the same host, in nanoseconds. Linux answers one per second, after six at once
    /// (icmp_ratelimit).
    static let queryGap: Int64 = 300_000_000
    /// The time for which a router's report about one target is evidence for others in nanoseconds.
    static let reportLifetime: Int64 = 30_000_000_000
    /// The maximum number of reports.
    static let reportLimit = 4_096
    /// The maximum number of hosts.
    static let recordLimit = 16_384
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

    /// The state of a host, as the answer to a request.
    struct State: Hashable, Sendable {
        /// Whether the host, or a host behind it, has answered since the time of the request.
        var isAlive: Bool
        /// The reply to the last query; `nil` if none was needed.
        var reply: HostReply?
        /// Whether the host has answered a query at an earlier time.
        var hasAnswered: Bool
        /// A router's recent report about another target of the same network behind the same first hop.
        var report: Report?

        /// Whether the host usually answers queries, and does not now.
        var isSilent: Bool { !isAlive && hasAnswered && reply?.outcome == .silent }
    }

    /// An ICMP message of a router about one target.
    struct Report: Hashable, Sendable {
        let target: IPAddress
        let code: Cause.Code
        let reporter: ProbeResult.Reporter
        /// The port of the attempt, if the report may concern only this port.
        let port: UInt16?
        let time: Int64
    }

    private struct Record: Sendable {
        var lastAlive: Int64?
        var lastAsked: Int64?
        var reply: HostReply?
        var hasAnswered = false
        var waiting: [(target: TargetID, request: Request)] = []
    }

    private struct ReportKey: Hashable, Sendable {
        let hop: Neighbor.Key
        let prefix: IPPrefix
    }

    private var records: [Neighbor.Key: Record] = [:]
    private var reports: [ReportKey: Report] = [:]

    /// The number of hosts of which something is known.
    var hostCount: Int { records.count }

    /// Returns the state of a host if it is known; `nil` if the target must wait for a reply. `mustAsk` is true if a query must be
    /// sent.
    mutating func state(_ request: Request, for target: TargetID, at now: Int64) -> (state: State?, mustAsk: Bool) {
        let host = request.query.host
        if records.count >= Self.recordLimit { records = records.filter { !$0.value.waiting.isEmpty } }
        var record = records.removeValue(forKey: host) ?? Record()
        defer { records[host] = record }
        if let state = state(record, request, at: now) { return (state, false) }
        record.waiting.append((target, request))
        if record.reply == nil, let asked = record.lastAsked, now - asked < Self.replyLimit { return (nil, false) }
        (record.lastAsked, record.reply) = (now, nil)
        return (nil, true)
    }

    private func state(_ record: Record, _ request: Request, at now: Int64) -> State? {
        let isAlive = record.lastAlive.map { $0 >= request.since } ?? false
        let isReplyRecent = record.lastAsked.map { $0 >= request.since || now - $0 < Self.queryGap } ?? false
        guard isAlive || (isReplyRecent && record.reply != nil) else { return nil }
        return state(record, request, isAlive: isAlive || record.reply?.outcome == .answered, at: now)
    }

    private func state(_ record: Record, _ request: Request, isAlive: Bool, at now: Int64) -> State {
        State(
            isAlive: isAlive, reply: record.reply, hasAnswered: record.hasAnswered,
            report: report(about: request.address, port: request.port, behind: request.hop, at: now))
    }

    /// Notes that a host behind the hop has answered.
    ///
    /// - Returns: whether the hop must be asked, because it is not known yet whether it answers queries.
    mutating func noteAlive(_ hop: Neighbor.Key, at now: Int64) -> Bool {
        guard var record = records.removeValue(forKey: hop) else {
            records[hop] = Record(lastAlive: now, lastAsked: now)
            return true
        }
        record.lastAlive = now
        records[hop] = record
        return false
    }

    /// Stores the reply of a host. Returns the targets that waited for it, with its state, in order.
    mutating func take(_ query: HostQuery, _ reply: HostReply, at now: Int64) -> [(target: TargetID, state: State)] {
        guard var record = records[query.host] else { return [] }
        let waiting = record.waiting
        record.waiting = []
        record.reply = reply
        if reply.outcome == .answered {
            record.hasAnswered = true
            record.lastAlive = now
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
    }

    /// Forgets everything after a suspend: the machine may be elsewhere.
    mutating func forgetAll() {
        records = records.filter { !$0.value.waiting.isEmpty }
        reports = [:]
    }

    // MARK: Reports

    /// Stores a router's report about a target behind the hop.
    mutating func note(_ report: Report, behind hop: Neighbor.Key) {
        if reports.count >= Self.reportLimit {
            reports = reports.filter { report.time - $0.value.time < Self.reportLifetime }
            if reports.count >= Self.reportLimit { reports = [:] }
        }
        reports[ReportKey(hop: hop, prefix: Self.prefix(of: report.target))] = report
    }

    /// Returns what a router has reported recently about another target of the same /24 or /64 behind the same hop.
    func report(about address: IPAddress, port: UInt16, behind hop: Neighbor.Key, at now: Int64) -> Report? {
        guard let report = reports[ReportKey(hop: hop, prefix: Self.prefix(of: address))],
            now - report.time < Self.reportLifetime, report.target != address, report.port == nil || report.port == port
        else { return nil }
        return report
    }

    private static func prefix(of address: IPAddress) -> IPPrefix {
        let length: UInt8 = address.family == .v4 ? 24 : 64
        return IPPrefix(IPPrefix(address, length: length).first, length: length)
    }
}
