/// The targets that are not probed, and report to this process, each with its machine.
struct ReportedTargets: Sendable {
    private var machines: [HeartbeatMachine?] = []
    private var free: [Int] = []
    private var slots: [TargetID: Int] = [:]
    private var ids: [TargetID] = []
    private var due = DueHeap()
    /// The targets whose first state is not published yet: the path is published first.
    private var beginning: [TargetID] = []
    /// What an earlier process remembers of jobs, and the time since which it did not run, in nanoseconds since 1970.
    private var earlier: HeartbeatMemories
    /// What is known of targets that are replaced in this turn, by the numbers of their successors.
    private var replaced: [TargetID: (endpoint: Endpoint, memory: HeartbeatMemory)] = [:]
    private var successors: [TargetID: TargetID] = [:]
    /// The slots of jobs of which more is known since ``takeChanges(at:)``.
    private var changed: Set<Int> = []

    /// The most successors that are remembered. Reports to a replaced target come within milliseconds.
    private static let successorLimit = 10_000

    /// Creates targets. - Parameter memories: what an earlier process remembers of jobs.
    init(remembering memories: HeartbeatMemories) { earlier = memories }

    var count: Int { slots.count }

    /// The time at which ``turn(at:)`` is due, on the monotonic clock in nanoseconds; `nil` for never.
    var deadline: Int64? { beginning.isEmpty ? due.next : .min }

    /// Returns a target's settings; `nil` if it is none of these.
    func settings(of id: TargetID) -> ProbeSettings? { slots[id].flatMap { machines[$0]?.settings } }

    /// Returns what is known of the jobs of which more is known since the last call.
    mutating func takeChanges(at now: Moment) -> [HeartbeatMemories.Job: HeartbeatMemory] {
        defer { changed = [] }
        var found: [HeartbeatMemories.Job: HeartbeatMemory] = [:]
        for slot in changed { if let machine = machines[slot] { found[.init(machine)] = machine.memory(at: now) } }
        return found
    }

    /// Adds a target, whose first state the next turn publishes.
    mutating func add(_ id: TargetID, _ endpoint: Endpoint, _ settings: ProbeSettings, at now: Moment) {
        guard slots[id] == nil else { return }
        // Another name is another job.
        let former = replaced.removeValue(forKey: id).flatMap { $0.endpoint == endpoint ? $0.memory : nil }
        let memory = former ?? earlier[HeartbeatMemories.Job(endpoint, settings)]
        let machine = HeartbeatMachine(
            endpoint, settings, remembering: memory, absentSince: former == nil ? earlier.absentSince ?? memory?.sign : nil,
            at: now)
        let slot = free.popLast() ?? machines.count
        if slot == machines.count {
            machines.append(machine)
            ids.append(id)
        } else {
            (machines[slot], ids[slot]) = (machine, id)
        }
        slots[id] = slot
        due.set(slot, due: machine.deadline)
        beginning.append(id)
        changed.insert(slot)
    }

    /// Notes that a target is about to be removed, and another one to be added for the same job.
    mutating func replace(_ id: TargetID, by other: TargetID, at now: Moment) {
        guard let slot = slots[id], let machine = machines[slot] else { return }
        replaced[other] = (machine.endpoint, machine.memory(at: now))
        if successors.count >= Self.successorLimit { successors = [:] }
        successors[id] = other
    }

    mutating func remove(_ id: TargetID) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        machines[slot] = nil
        due.set(slot, due: nil)
        changed.remove(slot)
        free.append(slot)
    }

    /// Passes a report to its target, or to the one that has replaced it, and returns the effects.
    mutating func receive(_ report: HeartbeatReport, for id: TargetID, at now: Moment) -> [MonitorMachine.Effect] {
        var id = id
        // A successor has a larger number, so that the way ends.
        while slots[id] == nil, let next = successors[id], next > id { id = next }
        guard let slot = slots[id] else { return [] }
        changed.insert(slot)
        return begin(at: now) + change(slot) { $0.receive(report, at: now) }
    }

    /// Notes that the machine was suspended for a time in nanoseconds.
    mutating func resumed(after asleep: Int64, at now: Moment) -> [MonitorMachine.Effect] {
        machines.indices.flatMap { slot in machines[slot] == nil ? [] : change(slot) { $0.resumed(after: asleep, at: now) } }
    }

    /// Publishes the first states of new targets.
    private mutating func begin(at now: Moment) -> [MonitorMachine.Effect] {
        guard !beginning.isEmpty else { return [] }
        defer { beginning = [] }
        return beginning.compactMap { id in
            slots[id].flatMap { machines[$0] }.map { .emit(.server(id, $0.initialUpdate(at: now))) }
        }
    }

    /// Handles the targets that are due, at most ``Fleet/turnBudget`` of them.
    mutating func turn(at now: Moment) -> [MonitorMachine.Effect] {
        if !replaced.isEmpty { replaced = [:] }
        var effects = begin(at: now)
        for _ in 0..<Fleet.turnBudget {
            guard let slot = due.takeDue(at: now.monotonicNanoseconds) else { break }
            let found = change(slot) { $0.tick(at: now) }
            if !found.isEmpty { changed.insert(slot) }
            effects += found
        }
        return effects
    }

    private mutating func change(
        _ slot: Int, _ body: (inout HeartbeatMachine) -> [HeartbeatMachine.Effect]
    ) -> [MonitorMachine.Effect] {
        guard var machine = machines[slot] else { return [] }
        let (id, effects) = (ids[slot], body(&machine))
        machines[slot] = machine
        due.set(slot, due: machine.deadline)
        return effects.map { effect in
            switch effect {
            case .publish(let update): .emit(.server(id, update))
            case .report(let report): .emit(.probe(id, report))
            }
        }
    }
}

extension HeartbeatMemories.Job {
    fileprivate init(_ machine: HeartbeatMachine) { self.init(machine.endpoint, machine.settings) }
}
