internal import Pacing

/// The schedule of dumps. The first request of a table starts a dump at once; the next dump of the same table starts at least a
/// second after the last start. One dump runs at a time, because a netlink socket supports only one. An interrupted dump is
/// repeated up to five times.
///
/// ```
///            request               next()                    finished(.complete)
///   idle ───────────→ requested ──────────→ running ─────────────────────────────→ idle
///                         ↑                    │ finished(.interrupted), attempts < 5
///                         └──── after jitter ──┤
///                         └──── after seconds ─┘ finished(.interrupted), attempts = 5: the partial result is used, and stale
/// ```
/// A routing table may also be dumped for single interfaces. Those dumps follow the same rules, independently of the dumps of the
/// complete table. A dump of the complete table replaces them.
package struct DumpSchedule: Sendable {
    /// The end of a dump: complete or interrupted.
    package enum End: Hashable, Sendable {
        case complete
        /// The kernel's table changed during the dump (NLM_F_DUMP_INTR), or the dump failed with an error that may be temporary.
        case interrupted
    }

    /// The treatment of a dump that ended.
    package enum Decision: Hashable, Sendable {
        /// The result is complete and is used.
        case accept
        /// The result may be incomplete, but is better than none, and is used.
        case acceptPartial
        /// The result is discarded; another dump follows soon.
        case retry
    }

    private struct Table: Sendable {
        var earliestStart: Int64?
        var lastStart: Int64?
        var attempts = 0
        var partialCount = 0
        var isStale = false
        // The interfaces with stale routes, and the earliest start of each interface's dump.
        var interfaces: [UInt32: Int64] = [:]
        var lastInterfaceStart: Int64?

        var due: Int64? { interfaces.isEmpty ? earliestStart : earlier(earliestStart, interfaces.values.min()) }
    }

    /// The maximum number of stale interfaces. If there are more, the complete table is dumped.
    static let interfaceLimit = 8

    /// The minimum time between the starts of two dumps of a table in nanoseconds. Repetitions of interrupted dumps are exempt.
    static let interval: Int64 = 1_000_000_000
    /// The number of repetitions of an interrupted dump.
    static let retries = 5
    private static let retryStep: UInt64 = 20_000_000

    // Indexed by the table's number.
    private var tables = [Table](repeating: Table(), count: KernelTable.allCases.count)
    package private(set) var running: KernelTable?
    /// The interface to whose routes the running dump is limited; `nil` for a complete table.
    package private(set) var runningInterface: UInt32?

    package init() {}

    /// Requests a dump of a table.
    package mutating func request(_ table: KernelTable, at now: Int64) {
        let earliest = self[table].lastStart.map { max(now, $0 + Self.interval) } ?? now
        self[table].earliestStart = min(self[table].earliestStart ?? .max, earliest)
    }

    /// Requests a dump of the routes over one interface.
    package mutating func request(_ routes: StaleRoutes, at now: Int64) {
        let table = KernelTable.routes(routes.family)
        var state = self[table]
        let earliest = state.lastInterfaceStart.map { max(now, $0 + Self.interval) } ?? now
        state.interfaces[routes.interface] = min(state.interfaces[routes.interface] ?? .max, earliest)
        let isTooMany = state.interfaces.count > Self.interfaceLimit
        if isTooMany { state.interfaces = [:] }
        self[table] = state
        if isTooMany { request(table, at: now) }
    }

    /// Requests dumps of all tables, each as early as its interval permits.
    package mutating func requestAll(at now: Int64) {
        for table in KernelTable.allCases { request(table, at: now) }
    }

    /// Starts the next dump that is due, and returns its table; `nil` if a dump is running or none is due. ``runningInterface``
    /// limits the dump if it is not `nil`.
    package mutating func next(at now: Int64) -> KernelTable? {
        guard running == nil else { return nil }
        guard let due = KernelTable.allCases.first(where: { due(of: $0).map { $0 <= now } ?? false }) else { return nil }
        var state = self[due]
        if state.earliestStart.map({ $0 <= now }) ?? false {
            state.earliestStart = nil
            state.lastStart = now
            state.interfaces = [:]
            runningInterface = nil
        } else {
            // A fixed order, so that a replay starts the same dumps.
            runningInterface = state.interfaces.min { ($0.value, $0.key) < ($1.value, $1.key) }?.key
            if let runningInterface { state.interfaces[runningInterface] = nil }
            state.lastInterfaceStart = now
        }
        self[due] = state
        running = due
        return due
    }

    /// Ends the running dump. `draw` is a random number for the jitter.
    package mutating func finished(_ end: End, draw: UInt64, at now: Int64) -> Decision {
        guard let table = running else { return .accept }
        var state = self[table]
        let interface = runningInterface
        (running, runningInterface) = (nil, nil)
        defer { self[table] = state }
        switch end {
        case .complete where interface != nil:
            state.attempts = 0
            return .accept
        case .complete:
            state.attempts = 0
            state.partialCount = 0
            state.isStale = false
            return .accept
        case .interrupted where state.attempts < Self.retries:
            state.attempts += 1
            let jitter = Int64(draw % (Self.retryStep * UInt64(1 << state.attempts)))
            if let interface {
                state.interfaces[interface] = min(state.interfaces[interface] ?? .max, now + jitter)
            } else {
                state.earliestStart = min(state.earliestStart ?? .max, now + jitter)
            }
            return .retry
        case .interrupted:
            state.attempts = 0
            state.partialCount = min(state.partialCount + 1, 5)
            state.isStale = true
            // 2, 4, 8, 16, 32 s: a table that changes continuously must not keep the machine busy.
            state.earliestStart = min(state.earliestStart ?? .max, now + Self.interval << Int64(state.partialCount))
            return .acceptPartial
        }
    }

    /// The earliest time at which ``next(at:)`` returns a table; `nil` for never, and while a dump runs.
    package var deadline: Int64? {
        guard running == nil else { return nil }
        return tables.indices.reduce(nil) { earlier($0, tables[$1].due) }
    }

    /// Whether no dump is running or requested.
    package var isIdle: Bool { running == nil && tables.allSatisfy { $0.due == nil } }

    /// Whether the state of any table is a partial result.
    package var isStale: Bool { tables.contains { $0.isStale } }

    /// Returns whether a dump of the table is running or requested.
    package func isPending(_ table: KernelTable) -> Bool { running == table || due(of: table) != nil }

    // The subscript would copy the table's state.
    private func due(of table: KernelTable) -> Int64? { tables[Int(table.rawValue)].due }

    private subscript(table: KernelTable) -> Table {
        get { tables[Int(table.rawValue)] }
        set { tables[Int(table.rawValue)] = newValue }
    }
}
