import Reachability

/// A collector of the verdict of one target, with the probe that decided it and the verdicts of its addresses.
///
/// It asks its owner for what the monitor does not do by itself (``Request``), and is done when all of that is known.
struct WhyCollection {
    /// A task of the owner.
    enum Request: Hashable {
        /// Probes each of these addresses as a target of its own.
        case probeAddresses([IPAddress])
        /// Examines a silent target: the hops, and the first hop by questions of its own.
        case examineSilence
        /// Asks for the neighbor entry of the first hop, and passes it to ``note(_:at:)``.
        case askNeighbor
    }

    /// The additional time after the deadlines of two probes within which a verdict must arrive. A silent target's second probe
    /// starts up to 3.1 s after the first.
    static let margin = Duration.milliseconds(5100)
    /// The time between two questions for the neighbor entry.
    static let neighborGap = Duration.milliseconds(250)
    /// The time after the first packet within which the kernel has checked a neighbor whose entry was stale: five seconds in the state
    /// DELAY, three requests one second apart in the state PROBE (arp(7): delay_first_probe_time, ucast_solicit, retrans_time).
    static let neighborLimit = Duration.seconds(9)
    /// The maximum number of addresses that are probed.
    static let addressLimit = 16

    let endpoint: Endpoint?
    /// Whether the target is the canary, of which only the verdict is wanted.
    let isCanary: Bool
    private let settings: ProbeSettings
    private let limit: Duration
    private(set) var update: ServerUpdate?
    private var reports: [ProbeReport] = []
    private(set) var addresses: [AddressResult] = []
    private var requests: [Request] = []
    private var start: Moment?
    private var end: Moment?
    private var hasExamined = false
    private var nextNeighbor: Moment?
    private var isNeighborKnown = false

    init(endpoint: Endpoint?, settings: ProbeSettings, isCanary: Bool = false) {
        self.endpoint = endpoint
        self.isCanary = isCanary
        self.settings = settings
        limit = settings.timeout + settings.timeout + Self.margin
    }

    /// Notes the time at which the target's probes begin.
    mutating func begin(at now: Moment) {
        guard start == nil else { return }
        (start, end) = (now, now.advanced(by: limit))
    }

    mutating func receive(_ update: ServerUpdate) {
        self.update = update
        if isCanary { return }
        if isDecided, update.statusName == .unreachable, update.cause?.isNoAnswer == true, nextNeighbor == nil, !isNeighborKnown {
            nextNeighbor = update.moment
        }
    }

    mutating func receive(_ report: ProbeReport) {
        if isCanary { return }
        reports.append(report)
        if !hasExamined, report.cause?.isNoAnswer == true {
            hasExamined = true
            requests.append(.examineSilence)
        }
        // The addresses of a proxy are not those of the target.
        if addresses.isEmpty, proxy == nil,
            let found = usableAddresses(report.lookup), found.count > 1
        {
            addresses = found.map { AddressResult($0) }
            end = max(end ?? report.moment, report.moment.advanced(by: limit))
            requests.append(.probeAddresses(found))
        }
    }

    /// Takes the verdict of one of the addresses, by its position.
    mutating func receive(address number: Int, _ update: ServerUpdate) {
        guard addresses.indices.contains(number) else { return }
        addresses[number].update = update
    }

    /// The proxy through which the target is probed; `nil` for none.
    private var proxy: Endpoint? { endpoint.flatMap { settings.http.proxy(for: $0) } }

    /// The addresses of a name that probes may use, each once.
    private func usableAddresses(_ lookup: LookupAnswer?) -> [IPAddress]? {
        guard let lookup, lookup.code == 0 else { return nil }
        var seen: Set<IPAddress> = []
        let usable = lookup.addresses.filter {
            settings.families.contains($0.family) && !$0.isUnspecified && seen.insert($0).inserted
        }
        return Array(usable.prefix(Self.addressLimit))
    }

    /// Takes the neighbor entry of the first hop. The kernel checks an entry in the states DELAY and PROBE, so it is asked for again.
    mutating func note(_ neighbor: NeighborAnswer, at now: Moment) {
        let isOver = start.map { now >= $0.advanced(by: Self.neighborLimit) } ?? true
        isNeighborKnown = isOver || !neighbor.isBeingChecked
        nextNeighbor = isNeighborKnown ? nil : now.advanced(by: Self.neighborGap)
    }

    /// Returns the tasks that are due, each once.
    mutating func takeRequests(at now: Moment) -> [Request] {
        defer { requests = [] }
        if let nextNeighbor, now >= nextNeighbor {
            self.nextNeighbor = nil
            requests.append(.askNeighbor)
        }
        return requests
    }

    /// Whether ``takeRequests(at:)`` has a task.
    func hasRequests(at now: Moment) -> Bool { !requests.isEmpty || nextNeighbor.map { now >= $0 } ?? false }

    func isDone(at now: Moment) -> Bool {
        if hasRequests(at: now) { return false }
        if let end, now >= end { return true }
        guard endpoint != nil else { return start != nil }
        return isDecided && nextNeighbor == nil && addresses.allSatisfy { $0.status != .unknown }
    }

    /// The time at which the collection changes without a further event; `nil` before ``begin(at:)``.
    var deadline: Moment? {
        guard let end else { return nil }
        return nextNeighbor.map { min($0, end) } ?? end
    }

    private var isDecided: Bool { update.map { $0.statusName != .unknown } ?? false }

    /// Returns the evidence so far, without the kernel's answers.
    func evidence(path: NetworkPath, at now: Moment) -> DiagnosisEvidence {
        DiagnosisEvidence(
            endpoint: endpoint, proxy: proxy, path: path, update: update,
            report: decidingReport, addresses: addresses,
            boundTo: settings.interface, examined: examined(at: now))
    }

    /// The time since the target's probes began; `nil` before.
    func examined(at now: Moment) -> Duration? { start.map { now.elapsed(since: $0) } }

    /// The last probe that had the verdict's result, or the last one.
    private var decidingReport: ProbeReport? {
        let isDeciding = { (report: ProbeReport) in
            update?.cause.map { $0.isSameFailure(as: report.cause) } ?? (report.cause == nil)
        }
        return isDecided && update?.statusName != .degraded ? reports.last(where: isDeciding) ?? reports.last : reports.last
    }
}

extension Cause {
    /// Whether the cause means that nothing answered.
    fileprivate var isNoAnswer: Bool {
        isSilence || [.upstreamSilent, .hostSilent, .resolverSilent].contains(code)
    }
}

/// The collectors of several targets, which share a monitor and its path.
struct WhyBatch: Watcher.Condition {
    private let start: Moment
    private(set) var path: NetworkPath?
    private(set) var members: [WhyCollection]
    private var roles: [TargetID: (member: Int, address: Int?)] = [:]

    /// Creates the collectors of targets with these numbers. `path` is the path if the monitor is settled.
    init(_ members: [(TargetID?, WhyCollection)], path: NetworkPath? = nil, start: Moment) {
        self.start = start
        self.members = members.map(\.1)
        for (number, member) in members.enumerated() { if let id = member.0 { roles[id] = (number, nil) } }
        if let path { settle(path, at: start) }
    }

    private mutating func settle(_ path: NetworkPath, at now: Moment) {
        self.path = path
        for number in members.indices { members[number].begin(at: now) }
    }

    /// Adds the number of a target that probes one address of a member.
    mutating func add(_ id: TargetID, member: Int, address: Int) { roles[id] = (member, address) }

    /// The numbers of the targets of a member.
    func targets(of member: Int) -> [TargetID] { roles.filter { $0.value.member == member }.map(\.key) }

    mutating func receive(_ event: MonitorEvent) {
        switch event {
        case .path(let update): settle(update.path, at: update.moment)
        case .server(let id, let update):
            guard let role = roles[id] else { return }
            if let address = role.address {
                members[role.member].receive(address: address, update)
            } else {
                members[role.member].receive(update)
            }
        case .probe(let id, let report):
            guard let role = roles[id], role.address == nil else { return }
            members[role.member].receive(report)
        case .incident, .resync, .gap, .ended: break
        }
    }

    /// Returns the tasks that are due, with the positions of their members.
    mutating func takeRequests(at now: Moment) -> [(member: Int, request: WhyCollection.Request)] {
        members.indices.flatMap { number in members[number].takeRequests(at: now).map { (number, $0) } }
    }

    mutating func note(_ neighbor: NeighborAnswer, of member: Int, at now: Moment) { members[member].note(neighbor, at: now) }

    /// Whether the owner must act, or nothing more will follow.
    func isDone(at now: Moment) -> Bool {
        guard path != nil else { return now >= settleEnd }
        return members.contains { $0.hasRequests(at: now) } || isComplete(at: now)
    }

    /// Whether the path and all verdicts are known, or their time limit is reached.
    func isComplete(at now: Moment) -> Bool {
        path == nil ? now >= settleEnd : members.allSatisfy { $0.isDone(at: now) }
    }

    func deadline(at now: Moment) -> Moment? {
        path == nil ? settleEnd : members.lazy.filter { !$0.isDone(at: now) }.compactMap(\.deadline).min()
    }

    private var settleEnd: Moment { start.advanced(by: StatusCollection.settleLimit) }
}
