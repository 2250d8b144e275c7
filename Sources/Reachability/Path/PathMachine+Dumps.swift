internal import Pacing

// The dumps of a path machine, and the lifetimes of routes.

extension PathMachine {
    /// A dump that is complete and is being merged.
    struct Merge: Sendable {
        let table: KernelTable
        /// The interface whose routes were dumped; `nil` for the complete table.
        let interface: UInt32?
        let isPartialResult: Bool
        let wasDoubtful: Bool
        /// When the next slice may be: in the next turn.
        var due: Int64
    }

    /// So many routes are compared in about a millisecond.
    package static let usualMergeLimit = 2_048

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
        let (interface, wasDoubtful) = (schedule.runningInterface, schedule.isDoubtful)
        // A kernel without IPv6 or nexthop objects refuses their dumps: the table is empty (EAFNOSUPPORT, EOPNOTSUPP, EINVAL).
        let isAbsent = interface == nil && (errno == 97 || errno == 95 || errno == 22)
        let hasFailed = errno != 0 && !isAbsent
        // An interface that is gone has no routes, and its removal says what else is stale.
        let isGone = interface != nil && errno == Self.noSuchDevice
        let isComplete = !wasInterrupted && (!hasFailed || isGone)
        let verdict = schedule.finished(isComplete ? .complete : .interrupted, draw: draws.next(), at: time)
        if hasFailed || verdict == .again { keeper.abandonDump() }
        if verdict == .again || isGone {
            _ = takeUnderway(table)
            return []
        }
        merge = Merge(
            table: table, interface: interface, isPartialResult: verdict == .acceptPartial, wasDoubtful: wasDoubtful, due: time
        )
        mergeDump(at: time)
        return []
    }

    /// Merges a slice of the dump that is complete.
    mutating func mergeDump(at time: Int64) {
        guard let finished = merge else { return }
        let before = untold.changes.count
        let isDone = keeper.mergeDump(atMost: mergeLimit, &untold)
        noteChanges(from: before, at: time)
        if before != untold.changes.count, resync.tables.contains(finished.table) { reasons.insert(.resynced) }
        guard isDone else {
            merge?.due = time + 1
            return
        }
        merge = nil
        let isStale = takeUnderway(finished.table)
        // A table that cannot be read does not keep the path from being told: it is asked for, not computed from tables.
        let settles = finished.interface == nil && unsettled.remove(finished.table) != nil
        if settles || finished.isPartialResult { touch() }
        if finished.isPartialResult {
            // The dump that will make it good is announced when it comes.
            if resync.reasons.isEmpty { resync.reasons = [.dumpInterrupted] }
            resync.tables.insert(finished.table)
        } else if !isStale, finished.interface == nil {
            // What the kernel answered meanwhile may have come of something that no dump shows any more.
            if resync.tables.remove(finished.table) != nil, resync.tables.isEmpty { work.ask = true }
        }
        if let path, path.isConsistent != isConsistent { touch() }
    }

    /// Whether events were lost while this dump ran. Once only: its repetition begins after the loss.
    private mutating func takeUnderway(_ table: KernelTable) -> Bool {
        guard resync.underway == table else { return false }
        resync.underway = nil
        return true
    }

    // What was doubtful is consistent again once the dump that says so is merged.
    var isConsistent: Bool { !schedule.isDoubtful && merge?.wasDoubtful != true && !isPolling }

    mutating func startDump(at now: Moment) -> [Effect] {
        guard merge == nil, let table = schedule.next(at: now.monotonicNanoseconds) else { return [] }
        keeper.beginDump(table, over: schedule.runningInterface)
        (sequence, wasInterrupted) = (sequence &+ 1, false)
        return [.dump(table, over: schedule.runningInterface, sequence: sequence)]
    }

    // MARK: Lifetimes

    /// The kernel counts lifetimes by its clock's ticks and tells them in hundredths of a second: by this time the route is over.
    private static let lifetimeGrain = Duration.milliseconds(50)

    // The kernel stops using a route when its time is over (router advertisements), and tells up to half a minute later, when it
    // clears up. A router that is heard again prolongs the time without a word.
    mutating func noteLifetime(of message: NetlinkMessage, at now: Int64) {
        guard let left = message.routeLifetime else { return }
        expiryDue = min(expiryDue ?? .max, now.addingSaturated((left + Self.lifetimeGrain).saturatingNanoseconds))
    }

    mutating func lookAtLifetimes(at now: Int64) {
        guard let due = expiryDue, due <= now else { return }
        expiryDue = nil
        work.ask = true
        // What is left of the others, and of one that was prolonged.
        schedule.want(.routesV6, at: now)
    }
}
