internal import Pacing

/// The open incidents of a monitor. It combines failures of targets that have the same cause and subject.
///
/// ```
///            the first failure            the last target is up, fails for another cause, or is removed
///   (none) ───────────────────▶ open ──────────────────────────────────────────────────────────▶ over
///                              │    ▲
///                              └────┘ another target fails with the same key
/// ```
///
/// - A failure belongs to the open incident of its ``IncidentKey``. A fault of the subject as such (a silent gateway, a lost
///   carrier) accepts failures for as long as it is open: targets are probed one after the other. Another incident accepts
///   them for ``window`` after its last one.
/// - ``take(at:)`` returns what is to be published. An incident that is over before it was published is not published.
/// - A target that changes its cause leaves its incident and belongs to another one.
/// - With members, an incident has the numbers of all its targets, and it is published too if a further one belongs to it.
///
/// Each event takes constant time. Targets that do not fail need no memory, those that fail a number in a dictionary.
struct IncidentBook: Sendable {
    /// The time within which failures with the same key are one incident, in nanoseconds.
    static let window: Int64 = 2_000_000_000
    /// The minimum time between two publications of a growing incident, in nanoseconds.
    static let growthGap: Int64 = 1_000_000_000

    private struct Entry: Sendable {
        /// The incident's number; 0 for a free entry.
        var number: Int
        let key: IncidentKey
        let cause: Cause
        let began: Moment
        var targets: [Endpoint] = []
        /// All targets that have failed; empty without members.
        var members = TargetSet()
        /// The number of targets that fail now.
        var failing = 0
        /// The largest number of targets that failed at the same time.
        var count = 0
        var lastFailure: Int64
        // The number of targets that was published last; `nil` before the first publication.
        var publishedCount: Int?
        var publishedMembers = 0
        var isChanged = false
        // The next publication of a growth must wait until the entry's place in `throttled` is due.
        var isThrottled = false

        var isOver: Bool { failing == 0 }
        var hasGrown: Bool { publishedCount.map { count > $0 || members.count > publishedMembers } ?? false }
        var needsPublication: Bool { publishedCount == nil || isOver || hasGrown && !isThrottled }
    }

    private struct Throttle: Sendable {
        let slot: Int
        let number: Int
        let due: Int64
    }

    private let hasMembers: Bool
    private var entries: [Entry] = []
    private var free: [Int] = []
    /// The slot of the incident that accepts further failures.
    private var newest: [IncidentKey: Int] = [:]
    private var slots: [TargetID: Int] = [:]
    // Slots in the order of their changes.
    private var changed: [Int] = []
    // In the order of their times, because each is added at its publication.
    private var throttled: [Throttle] = []
    private var firstThrottled = 0
    /// The number of throttled incidents that have grown.
    private var growing = 0
    private var nextNumber = 1
    /// The incident of the limit of open files, and the number of targets that wait.
    private var shortage: (slot: Int, count: Int)?

    /// Creates a book. - Parameter hasMembers: whether incidents have the numbers of all their targets.
    init(hasMembers: Bool = false) { self.hasMembers = hasMembers }

    /// The number of open incidents.
    var count: Int { entries.count - free.count }

    /// The time at which ``take(at:)`` has something to return, in nanoseconds; `.min` for now, `nil` for never.
    var deadline: Int64? {
        if !changed.isEmpty { return .min }
        return growing > 0 ? throttled[firstThrottled].due : nil
    }

    // MARK: Failures

    /// Records a target's status. - Parameter now: the time of the failure; `nil` for that of the update.
    mutating func record(_ id: TargetID, _ update: ServerUpdate, at now: Moment? = nil) {
        guard let cause = update.cause, update.state != .up, update.state != .unknown else {
            return remove(id)
        }
        let key = IncidentKey(cause, of: update.endpoint, isUnreachable: update.state == .unreachable)
        if let slot = slots[id] {
            if entries[slot].key == key { return }
            remove(id)
        }
        let slot = slot(for: key, cause, at: now ?? update.moment)
        slots[id] = slot
        change(slot) { [hasMembers] entry in
            if hasMembers { entry.members.insert(id.number) }
            entry.failing += 1
            entry.count = max(entry.count, entry.failing)
            if entry.targets.count < Incident.listedTargets, !entry.targets.contains(update.endpoint) {
                entry.targets.append(update.endpoint)
            }
        }
    }

    /// Removes a target from its incident: it is up, or is no longer monitored.
    mutating func remove(_ id: TargetID) {
        guard let slot = slots.removeValue(forKey: id) else { return }
        change(slot) { $0.failing -= 1 }
    }

    /// Opens an incident of this process's limits, which delay the probes of targets. Their updates do not show it.
    ///
    /// - Parameters:
    ///   - cause: the limit.
    ///   - targets: the first targets that wait.
    ///   - waiting: all targets that wait.
    ///   - now: the time at which they began to wait.
    mutating func beginShortage(_ cause: Cause, of targets: [Endpoint], waiting: [TargetID], at now: Moment) {
        guard shortage == nil else { return }
        let count = max(waiting.count, 1)
        let key = IncidentKey(layer: cause.layer, code: cause.code, subject: .init(.interface, nil), scope: .local)
        let slot = slot(for: key, cause, at: now)
        shortage = (slot, count)
        change(slot) { [hasMembers] entry in
            if hasMembers { entry.members.formUnion(TargetSet(waiting.map(\.number))) }
            entry.failing += count
            entry.count = max(entry.count, entry.failing)
            let known = entry.targets
            entry.targets += targets.filter { !known.contains($0) }.prefix(Incident.listedTargets - known.count)
        }
    }

    /// Ends the incident of this process's limits.
    mutating func endShortage() {
        guard let (slot, count) = shortage else { return }
        shortage = nil
        change(slot) { $0.failing -= count }
    }

    /// Returns the slot of the incident to which a failure belongs; a new one if none accepts it.
    private mutating func slot(for key: IncidentKey, _ cause: Cause, at now: Moment) -> Int {
        let time = now.monotonicNanoseconds
        if let slot = newest[key],
            key.isFaultOfSubject || time <= entries[slot].lastFailure.addingSaturated(Self.window)
        {
            entries[slot].lastFailure = time
            return slot
        }
        let entry = Entry(number: nextNumber, key: key, cause: cause, began: now, lastFailure: time)
        nextNumber += 1
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            entries[slot] = entry
        } else {
            slot = entries.count
            entries.append(entry)
        }
        newest[key] = slot
        return slot
    }

    private mutating func change(_ slot: Int, _ body: (inout Entry) -> Void) {
        let hadGrown = entries[slot].hasGrown
        body(&entries[slot])
        if entries[slot].isThrottled, entries[slot].hasGrown, !hadGrown { growing += 1 }
        if entries[slot].needsPublication { note(slot) }
    }

    private mutating func note(_ slot: Int) {
        guard !entries[slot].isChanged else { return }
        entries[slot].isChanged = true
        changed.append(slot)
    }

    // MARK: Publication

    /// Returns the incidents that have opened, are over, or have grown and may be published again, in the order of these
    /// changes.
    mutating func take(at now: Moment) -> [Incident] {
        endThrottles(at: now.monotonicNanoseconds)
        guard !changed.isEmpty else { return [] }
        let slots = changed
        changed.removeAll(keepingCapacity: slots.count <= 1_024)
        var incidents: [Incident] = []
        for slot in slots {
            entries[slot].isChanged = false
            let entry = entries[slot]
            guard entry.needsPublication else { continue }
            if !entry.isOver {
                incidents.append(incident(entry, at: now))
                (entries[slot].publishedCount, entries[slot].isThrottled) = (entry.count, true)
                entries[slot].publishedMembers = entry.members.count
                let due = now.monotonicNanoseconds.addingSaturated(Self.growthGap)
                throttled.append(Throttle(slot: slot, number: entry.number, due: due))
            } else {
                if entry.publishedCount != nil { incidents.append(incident(entry, at: now)) }
                remove(slot)
            }
        }
        return incidents
    }

    private mutating func remove(_ slot: Int) {
        if entries[slot].isThrottled, entries[slot].hasGrown { growing -= 1 }
        if newest[entries[slot].key] == slot { newest[entries[slot].key] = nil }
        (entries[slot].number, entries[slot].targets, entries[slot].members) = (0, [], TargetSet())
        free.append(slot)
    }

    /// Permits the publication of incidents that were published ``growthGap`` ago.
    private mutating func endThrottles(at now: Int64) {
        while firstThrottled < throttled.count, throttled[firstThrottled].due <= now {
            let throttle = throttled[firstThrottled]
            firstThrottled += 1
            guard entries[throttle.slot].number == throttle.number else { continue }
            entries[throttle.slot].isThrottled = false
            guard entries[throttle.slot].hasGrown else { continue }
            growing -= 1
            note(throttle.slot)
        }
        guard firstThrottled > 64, firstThrottled * 2 > throttled.count else { return }
        throttled.removeFirst(firstThrottled)
        firstThrottled = 0
    }

    private func incident(_ entry: Entry, at now: Moment) -> Incident {
        // The time makes the identifier unique in a history that several processes write.
        let id = "\(entry.began.wallClockNanoseconds / 1_000_000)-\(entry.number)"
        return Incident(
            id: id, state: entry.isOver ? .over : .open, scope: entry.key.scope, subject: entry.key.subject, cause: entry.cause,
            targetCount: entry.count, targets: entry.targets, members: entry.members, began: entry.began,
            ended: entry.isOver ? now : nil, moment: now)
    }
}
