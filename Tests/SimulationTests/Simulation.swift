import FoundationEssentials
import NetlinkBytes
import Pacing

@testable import Reachability

/// A complete monitor, driven as its loop drives it, over a simulated kernel. Every step checks its invariants.
struct Simulation {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    let configuration: MonitorConfiguration
    private(set) var kernel: SimulatedKernel
    private(set) var machine: MonitorMachine
    var dice: SplitMix64
    private(set) var now = Moment(monotonicNanoseconds: 1_000_000_000, wallClockNanoseconds: 1_700_000_000_000_000_000)

    private var resolver = ResolverConfiguration()
    private var dump: SimulatedDump?
    private var upcoming: [MonitorMachine.Effect] = []
    private var isPerforming = false
    var lookups: [LookupRequest] = []
    var hostQueries: [HostQuery] = []
    var searches: [HopSearch] = []
    private var counters: UInt64 = 0
    var attempts: [ProbeAttempt] = []
    var late: [MonitorInput] = []
    var nextTarget = 0
    var present: [TargetID] = []
    var removed: Set<TargetID> = []
    var published: [TargetID: ServerUpdate] = [:]
    private var publishedPath: NetworkPath?
    /// The families for which a path was published.
    private var families: Set<IPAddress.Family> = []
    private var incidents: [String: Incident] = [:]
    /// The failing targets whose incident has ended, with the time of its end in nanoseconds. Most of them recover with its component, so that the next
    /// incident waits for a failed probe that began since then.
    private var recovering: [TargetID: Int64] = [:]
    private var mirror = KernelSnapshot()
    /// All inputs of the machine. ``emitted`` has its events.
    private(set) var recording: [RecordedInput] = []
    private(set) var emitted: [MonitorEvent] = []
    /// True if events were lost and no resync has reported their recovery.
    private var needsResync = false
    private(set) var settledPoints = 0
    /// The number of dumps of the routes over one interface.
    private(set) var narrowDumps = 0
    private static let mergeLimit = 3
    // In half of the runs, targets share the answers to their route queries.
    private let groupingLimit: Int?
    private(set) var satisfied = 0

    static let addresses = ["192.0.2.9:80", "198.51.1.7:443", "[2001:db8:ffff::9]:22", "name.example:80", "10.0.1.1:1"]
    private static let selections: [MonitorConfiguration.Selection] = [
        .any, .any, .any, .named("if2"), .required(.wired), .prohibited([.tunnel, .bridge]),
    ]

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        configuration = MonitorConfiguration(
            selection: Self.selections[Int(seed % UInt64(Self.selections.count))],
            families: [[.v4, .v6], [.v4, .v6], [.v4, .v6], [.v6]][Int(seed / 7 % 4)])
        kernel = SimulatedKernel(seed: seed &+ 1)
        // A finished dump of routes is merged in slices, between which events arrive.
        groupingLimit = seed % 2 == 0 ? 2 : nil
        machine = MonitorMachine(configuration, mergeLimit: Self.mergeLimit, groupingLimit: groupingLimit)
        resolver = ResolverConfiguration(nameservers: [.init(IPAddress(v4: 0x0a00_0035))], exists: true)
    }

    // MARK: Running

    mutating func run(steps: Int) throws {
        try feed(.began(seed: dice.next(), isPolling: false))
        try feed(.resolver(resolver))
        try endTurn()
        for _ in 0..<steps { try step() }
        try settle()
        try replay()
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }

    private mutating func step() throws {
        switch Int.random(in: 0..<1_000, using: &dice) {
        case 0..<480: kernel.change()
        case 480..<920: try turn()
        case 920..<935:
            for _ in 0..<Int.random(in: 5...60, using: &dice) { kernel.change() }
        case 935..<945: kernel.congest()
        case 945..<950: try resume()
        case 950..<960: try changeResolver()
        case 960..<975: try changeTargets()
        case 975..<985:
            pass(milliseconds: 5_000)
            try turn()
        default: try settle()
        }
        pass(milliseconds: Int64.random(in: 0...30, using: &dice))
    }

    private mutating func pass(milliseconds: Int64) {
        now = now.advanced(by: .milliseconds(milliseconds))
        if milliseconds > 20 { kernel.ghosts = [] }
    }

    /// Runs one turn of the loop.
    private mutating func turn() throws {
        try readEvents(upTo: Int.random(in: 0...20, using: &dice))
        for _ in 0..<Int.random(in: 0...3, using: &dice) { try readDump() }
        try answerTargets()
        try endTurn()
    }

    private mutating func readEvents(upTo limit: Int) throws {
        if kernel.isCongested {
            // The reader drops the queued messages. Only then does the kernel queue new ones.
            kernel.drained()
            needsResync = true
            try feed(.overrun)
            return
        }
        let batch = kernel.queue.prefix(limit)
        kernel.queue.removeFirst(batch.count)
        for bytes in batch { try feed(.datagram(bytes)) }
    }

    private mutating func readDump() throws {
        guard dump != nil else { return }
        if chance(1) {
            dump = nil
            try feed(.dumpFailed(errno: 105))
            return
        }
        // The loop reads all events that a slice may show before the slice.
        try readEvents(upTo: .max)
        guard var running = dump else { return }
        let slice = running.slice(of: &kernel, limit: Int.random(in: 1...12, using: &dice))
        dump = slice.isLast ? nil : running
        try feed(.dump(slice.bytes))
    }

    mutating func endTurn() throws {
        for round in 0... {
            guard try !feed(.turnEnded).isEmpty else { break }
            if round == 64 { throw Violation(description: "a turn without an end") }
        }
        try check()
        // The replay has no idle moments, and must have the same events.
        if chance(30) { machine.foresee() }
    }

    private mutating func resume() throws {
        let asleep = Int64.random(in: 1...3_600, using: &dice) * 1_000_000_000
        now = Moment(monotonicNanoseconds: now.monotonicNanoseconds, wallClockNanoseconds: now.wallClockNanoseconds + asleep)
        // A sleep before the first path is no gap.
        needsResync = needsResync || publishedPath != nil
        try feed(.resumed(nanosecondsAsleep: asleep))
        try endTurn()
    }

    private mutating func changeResolver() throws {
        resolver =
            chance(30)
            ? ResolverConfiguration() : ResolverConfiguration(nameservers: [.init(IPAddress(v4: 0x0a00_0035))], exists: true)
        try feed(.resolver(resolver))
        try endTurn()
    }

    // MARK: The loop

    @discardableResult
    mutating func feed(_ input: MonitorInput) throws -> [MonitorMachine.Effect] {
        recording.append(RecordedInput(moment: now, input: input))
        let effects = machine.handle(input.event, at: now)
        upcoming += effects
        guard !isPerforming else { return effects }
        isPerforming = true
        defer { isPerforming = false }
        while !upcoming.isEmpty { try perform(upcoming.removeFirst()) }
        return effects
    }

    private mutating func perform(_ effect: MonitorMachine.Effect) throws {
        switch effect {
        case .dump(let table, let interface, let sequence):
            guard dump == nil else { throw Violation(description: "a second dump beside \(dump?.table as Any)") }
            if chance(1) { return _ = try feed(.dumpFailed(errno: 16)) }
            if let interface, kernel.link(interface) == nil { return _ = try feed(.dumpFailed(errno: 19)) }
            if interface != nil { narrowDumps += 1 }
            dump = SimulatedDump(table, over: interface, sequence, of: kernel)
        case .askRoute(let query):
            // A target's route query sometimes gets no answer.
            try feed(.routeReply(query, query.port != 0 && chance(2) ? [] : kernel.reply(to: query)))
        case .askNeighbor(let key): try feed(.neighborReply(key, neighborReply(key)))
        case .askHost(let query): hostQueries.append(query)
        case .search(let search):
            guard search.others.count <= 2, search.limits.count <= 7 else { throw Violation(description: "\(search)") }
            searches.append(search)
        case .readCounters(let interface):
            counters += UInt64.random(in: 0..<3, using: &dice)
            try feed(.counters(interface, chance(5) ? nil : LinkCounters(received: counters, sent: counters + 7)))
        case .readEvidence(let link): try feed(.evidence(link.index, kernel.evidence(link)))
        case .resolve(let request): lookups.append(request)
        case .connect(let attempt):
            if attempts.contains(where: { $0.id == attempt.id }) { throw Violation(description: "attempt \(attempt.id) twice") }
            attempts.append(attempt)
        case .cancel(let id): attempts.removeAll { $0.id == id }
        case .cancelLookup(let id): lookups.removeAll { TargetID(owning: $0.id) == id }
        case .changed(let changes): mirror.apply(changes)
        case .emit(let event): try take(event)
        }
    }

    private mutating func neighborReply(_ key: Neighbor.Key) -> [UInt8] {
        switch Int.random(in: 0..<4, using: &dice) {
        case 0: return []
        case 1: return RawMessage.error(9, errno: 2).bytes
        case 2: return RawMessage.neighbor(Neighbor(interface: key.interface, address: key.address, state: .failed)).bytes
        default: return RawMessage.neighbor(Neighbor(interface: key.interface, address: key.address, state: .reachable)).bytes
        }
    }

    // MARK: Invariants

    /// Checks that an event of the machine follows the rules.
    private mutating func take(_ event: MonitorEvent) throws {
        emitted.append(event)
        switch event {
        case .path(let update):
            guard update.isInitial == (publishedPath == nil) else { throw Violation(description: "initial: \(update.isInitial)") }
            if !update.isInitial && update.reasons.isEmpty { throw Violation(description: "a path without a reason") }
            if (update.path.status == .satisfied) != (update.path.cause == nil) {
                throw Violation(description: "cause of \(update.path)")
            }
            if (update.path.interface == nil) != (update.path.status == .unsatisfied) {
                throw Violation(description: "\(update.path)")
            }
            publishedPath = update.path
            if update.path.supportsIPv4 { families.insert(.v4) }
            if update.path.supportsIPv6 { families.insert(.v6) }
        case .server(let id, let update):
            if publishedPath == nil { throw Violation(description: "a target before the path") }
            if removed.contains(id) { throw Violation(description: "target \(id) is removed and published") }
            if update.isInitial != (published[id] == nil) {
                throw Violation(description: "target \(id) initial: \(update.isInitial)")
            }
            let needsCause = update.statusName != .up && update.statusName != .unknown
            if needsCause != (update.cause != nil) {
                throw Violation(description: "\(update.statusName) with \(update.cause as Any)")
            }
            published[id] = update
            if update.cause == nil { recovering[id] = nil }
        case .probe(let id, let report):
            if removed.contains(id) { throw Violation(description: "target \(id) is removed and reported a probe") }
            if !report.succeeded, !report.isProvisional, let since = recovering[id], report.began >= since {
                recovering[id] = nil
            }
        case .incident(let incident):
            let known = incidents.updateValue(incident, forKey: incident.id)
            if !incident.isOpen { incidents[incident.id] = nil }
            if let ended = incident.ended {
                for (id, update) in published where update.cause != nil { recovering[id] = ended.monotonicNanoseconds }
            }
            let isNews =
                known.map {
                    incident.targetCount > $0.targetCount || !incident.cause.isSameFailure(as: $0.cause)
                        || incident.scope != $0.scope
                } ?? true
            guard incident.isOpen ? isNews : known != nil else {
                throw Violation(description: "\(incident) after \(known as Any)")
            }
            if let into = incident.into, incidents[into] == nil { throw Violation(description: "\(incident) into \(into)") }
        case .resync, .gap:
            if case .resync = event { needsResync = false }
            if publishedPath == nil { throw Violation(description: "\(event) before the path") }
        case .ended: throw Violation(description: "ended")
        }
    }

    /// Returns whether a target fails only because there has never been a path for its family, although that of the other one is satisfied.
    private func lacksFamily(_ update: ServerUpdate) -> Bool {
        guard publishedPath?.status == .satisfied, update.statusName == .unreachable, let address = update.address else {
            return false
        }
        return !families.contains(address.family) && (update.cause?.code == .noAddress || update.cause?.code == .noRoute)
    }

    /// Checks that each failure has an incident of a component that it accuses, and each component one incident.
    private func checkIncidents() throws {
        let updates = present.compactMap { id in published[id].map { (id: id, update: $0) } }.filter { !lacksFamily($0.update) }
        let failing = updates.compactMap { id, update in
            update.cause.map {
                (id: id, suspects: IncidentSuspects($0, of: update.endpoint, at: update.address, update.statusName))
            }
        }
        let open = Set(incidents.values.map(\.subject))
        let accused = Set(failing.flatMap { $0.suspects.shared + [$0.suspects.last] }.map(\.subject))
        let isFlapping = updates.contains { $0.update.isFlapping }
        for (id, suspects) in failing where !isFlapping && recovering[id] == nil {
            let subjects = suspects.shared.first.flatMap { $0.isProved ? [$0] : nil } ?? suspects.shared + [suspects.last]
            // A target that is down stays in its incident, or in that of its host, if its name is no longer resolved.
            let isOfName = published[id]?.cause?.layer == .dns
            let isHidden = isOfName && open.contains { $0 == suspects.last.subject || $0.kind == .host }
            guard isHidden || subjects.contains(where: { open.contains($0.subject) }) else {
                throw Violation(description: "no incident of \(subjects) in \(incidents.values)")
            }
        }
        guard open.isSubset(of: accused) || isFlapping else {
            throw Violation(description: "the incidents \(incidents.values) of the failures \(failing)")
        }
        let faults = incidents.values.filter { $0.kind == .fault }
        guard Set(faults.map(\.subject)).count == faults.count else {
            throw Violation(description: "two incidents of one component: \(faults)")
        }
    }

    private func check() throws {
        guard mirror == machine.path.snapshot else { throw Violation(description: "changes do not lead to the snapshot") }
        let deadline = machine.deadline
        if dump == nil && !machine.path.isIdle && deadline == nil {
            throw Violation(description: "pending work without a deadline")
        }
        if let due = machine.path.deadline, due > now.monotonicNanoseconds + 33_000_000_000 {
            throw Violation(description: "too far: \(due)")
        }
        guard machine.path.evidence.keys.allSatisfy({ mirror.links[$0] != nil }) else {
            throw Violation(description: "evidence of a removed interface")
        }
        guard machine.targetCount == present.count else { throw Violation(description: "targets") }
        try checkIncidents()
        // The last published path equals the present one.
        if let publishedPath, let path = machine.path.path {
            let pending = PathDifference.reasons(from: publishedPath, to: path)
            guard pending.isEmpty else { throw Violation(description: "not published: \(pending)") }
        }
    }

    // MARK: Settled state

    /// Lets the monitor settle without further changes, and compares it with the kernel.
    private mutating func settle() throws {
        var rounds = 0
        while true {
            rounds += 1
            if rounds > 3_000 { throw Violation(description: "never settled: \(machine.path.deadline ?? -1)") }
            if !kernel.queue.isEmpty || kernel.isCongested {
                try readEvents(upTo: 50)
            } else if dump != nil {
                try readDump()
            } else if let due = machine.path.isIdle ? machine.fleet.book.checkDue : nil {
                now = now.advanced(by: .nanoseconds(max(0, due - now.monotonicNanoseconds)))
            } else if machine.path.isIdle {
                break
            } else if let due = machine.path.deadline {
                now = now.advanced(by: .nanoseconds(max(0, due - now.monotonicNanoseconds)))
                kernel.ghosts = []
            }
            try endTurn()
        }
        try judge()
    }

    private mutating func judge() throws {
        settledPoints += 1
        let (truth, snapshot) = (kernel.truth, machine.path.snapshot)
        guard snapshot == truth else {
            throw Violation(description: "the snapshot is wrong; it lacks \(truth.changes(since: snapshot))")
        }
        guard let path = machine.path.path else { throw Violation(description: "no path") }
        if needsResync { throw Violation(description: "settled without reporting a resync") }
        guard path.isConsistent else { throw Violation(description: "settled and not consistent") }
        let isSatisfied = configuration.families.contains { family in queries(family).contains { kernel.isUsable($0) } }
        guard (path.status == .satisfied) == isSatisfied else {
            throw Violation(
                description: "\(path.status), \(path.cause?.description ?? "no cause"); the kernel says \(isSatisfied)")
        }
        try judgeDestinations()
        try judgeSharedRoutes()
        if path.supportsDNS != resolver.hasNameserver { throw Violation(description: "dns") }
        if isSatisfied { satisfied += 1 }
    }

    /// Checks that routes are queried for an address that no filter covers, and for the first address unless a filter covers it.
    private func judgeDestinations() throws {
        let (truth, destinations) = (kernel.truth, machine.path.destinations)
        let refusing: [Route.Kind] = [.unreachable, .prohibit, .blackhole]
        let byRules = truth.rules.filter { (6...8).contains($0.action) && !$0.isInverted }.compactMap(\.destination)
        let byRoutes = truth.allRoutes.filter { refusing.contains($0.kind) }.map(\.key.destination)
        let filters = (byRules + byRoutes).filter { $0.length > 0 }
        for family in IPAddress.Family.allCases {
            let (first, asked) = (RouteDestinations()[family], destinations[family])
            let covering = filters.filter { $0.contains(first) }
            // An IPv6 filter of 2000::/3 leaves no address that could be queried.
            let isHopeless = covering.contains { $0.length <= 3 }
            let isCovered = filters.contains { $0.contains(asked) }
            guard isHopeless || (!isCovered && (asked == first) == covering.isEmpty) else {
                throw Violation(description: "asked for \(asked), with the filters \(filters)")
            }
        }
    }

    private func queries(_ family: IPAddress.Family) -> [RouteQuery] {
        let anywhere = machine.path.destinations[family]
        let allowed = machine.path.catalog.interfaces.values.filter { $0.type != .loopback && configuration.allows($0) }.map(
            \.index)
        let each = allowed.map { RouteQuery(anywhere, interface: $0) }
        switch configuration.selection {
        case .any: return [RouteQuery(anywhere)]
        case .named, .required: return each
        case .prohibited:
            guard case .success((_, let hop)) = kernel.lookUp(RouteQuery(anywhere)), allowed.contains(hop.interface) else {
                return each
            }
            return [RouteQuery(anywhere)] + each
        }
    }

    // MARK: Replay

    /// Replays the inputs in another machine, some of them through the lines of a recording. The events must be the same.
    private func replay() throws {
        var other = MonitorMachine(configuration, mergeLimit: Self.mergeLimit, groupingLimit: groupingLimit)
        var events: [MonitorEvent] = []
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        for (number, line) in recording.enumerated() {
            var line = line
            if number % 10 == 0 { line = try decoder.decode(RecordedInput.self, from: encoder.encode(line)) }
            for effect in other.handle(line.input.event, at: line.moment) {
                if case .emit(let event) = effect { events.append(event) }
            }
        }
        guard events == emitted else { throw Violation(description: "the replay has other events") }
        guard other.path.snapshot == machine.path.snapshot else {
            throw Violation(description: "the replay has another snapshot")
        }
    }
}
