internal import Pacing

// The dumps of a path machine, and the lifetimes of routes.

extension PathMachine {
    /// A complete dump that is being merged.
    struct Merge: Sendable {
        let table: KernelTable
        /// The interface to whose routes the dump is limited; `nil` for the complete table.
        let interface: UInt32?
        let isPartialResult: Bool
        let wasStale: Bool
        /// The earliest time of the next slice, which belongs to the next turn.
        var due: Int64
    }

    /// The number of routes that can be compared in about a millisecond.
    package static let defaultMergeLimit = 2_048

    private static let noSuchDevice: Int32 = 19

    mutating func readDump(_ messages: [NetlinkMessage], at now: Moment) -> [Effect] {
        for message in messages where message.sequence == sequence && schedule.running != nil {
            if message.wasInterrupted { wasInterrupted = true }
            if case .done(let errno) = message.event { return endDump(errno: errno, at: now) }
            if message.event == .malformed { malformed += 1 } else { keeper.addDumped(message.event) }
            noteLifetime(of: message, at: now.monotonicNanoseconds)
        }
        return []
    }

    mutating func endDump(errno: Int32, at now: Moment) -> [Effect] {
        guard let table = schedule.running else { return [] }
        let time = now.monotonicNanoseconds
        let (interface, wasStale) = (schedule.runningInterface, schedule.isStale)
        // A kernel without IPv6 or nexthop objects refuses their dumps (EAFNOSUPPORT, EOPNOTSUPP, EINVAL). The table is then
        // empty.
        let isAbsent = interface == nil && (errno == 97 || errno == 95 || errno == 22)
        let hasFailed = errno != 0 && !isAbsent
        // A removed interface has no routes, and the event of its removal marks the other stale tables.
        let isGone = interface != nil && errno == Self.noSuchDevice
        let isComplete = !wasInterrupted && (!hasFailed || isGone)
        let decision = schedule.finished(isComplete ? .complete : .interrupted, draw: draws.next(), at: time)
        if hasFailed || decision == .retry { keeper.abandonDump() }
        if decision == .retry || isGone {
            _ = takeRunningDump(table)
            return []
        }
        merge = Merge(
            table: table, interface: interface, isPartialResult: decision == .acceptPartial, wasStale: wasStale, due: time
        )
        mergeDump(at: time)
        return []
    }

    /// Merges a slice of a complete dump.
    mutating func mergeDump(at time: Int64) {
        guard let finished = merge else { return }
        let before = pending.changes.count
        let isDone = keeper.mergeDump(atMost: mergeLimit, &pending)
        noteChanges(from: before, at: time)
        if before != pending.changes.count, resync.tables.contains(finished.table) { reasons.insert(.resynced) }
        guard isDone else {
            merge?.due = time + 1
            return
        }
        merge = nil
        let isStale = takeRunningDump(finished.table)
        // A table that cannot be read does not delay the path, which is computed from queries and not from tables.
        let settles = finished.interface == nil && unsettled.remove(finished.table) != nil
        if settles || finished.isPartialResult { markChanged() }
        if finished.isPartialResult {
            // The resync is announced when a later dump is complete.
            if resync.reasons.isEmpty { resync.reasons = [.dumpInterrupted] }
            resync.tables.insert(finished.table)
        } else if !isStale, finished.interface == nil {
            // The kernel's answers since the loss may depend on a state that no dump shows any more.
            if resync.tables.remove(finished.table) != nil, resync.tables.isEmpty { expireAnswers() }
        }
        if let path, path.isConsistent != isConsistent { markChanged() }
    }

    /// Returns whether events were lost while this dump ran, and clears the mark: the repeated dump begins after the loss.
    private mutating func takeRunningDump(_ table: KernelTable) -> Bool {
        guard resync.runningDump == table else { return false }
        resync.runningDump = nil
        return true
    }

    // A stale table counts as consistent only after the dump that corrects it is merged.
    var isConsistent: Bool { !schedule.isStale && merge?.wasStale != true && !isPolling }

    mutating func startDump(at now: Moment) -> [Effect] {
        guard merge == nil, let table = schedule.next(at: now.monotonicNanoseconds) else { return [] }
        keeper.beginDump(table, over: schedule.runningInterface)
        (sequence, wasInterrupted) = (sequence &+ 1, false)
        return [.dump(table, over: schedule.runningInterface, sequence: sequence)]
    }

    // MARK: Lifetimes

    /// The kernel counts lifetimes in clock ticks and reports hundredths of a second. After this additional time, the route has
    /// expired.
    private static let lifetimeGrain = Duration.milliseconds(50)

    // When the lifetime of a route (from router advertisements) expires, the kernel stops using the route at once. It sends the
    // event up to half a minute later, when it removes the route. A new advertisement extends the lifetime without an event.
    mutating func noteLifetime(of message: NetlinkMessage, at now: Int64) {
        guard let lifetime = message.routeLifetime else { return }
        expiryDue = min(expiryDue ?? .max, now.addingSaturated((lifetime + Self.lifetimeGrain).saturatingNanoseconds))
    }

    mutating func checkLifetimes(at now: Int64) {
        guard let due = expiryDue, due <= now else { return }
        expiryDue = nil
        expireAnswers()
        // Reads the remaining lifetimes of the other routes, and of a route whose lifetime was extended.
        schedule.request(.routesV6, at: now)
    }
}
