/// When which table is dumped: the first wish at once, the next dump of the same table at least a second after the last began,
/// one dump at a time (a netlink socket can have no more), interrupted ones up to five times again.
///
/// ```
///            want                  next()                    finished(.complete)
///   idle ───────────→ wanted(from) ───────→ running ─────────────────────────────→ idle
///                         ↑                    │ finished(.interrupted), tries < 5
///                         └──── after jitter ──┤
///                         └──── after a while ─┘ finished(.interrupted), tries = 5: the partial result stands, doubtful
/// ```
/// A table of routes may also be dumped for single interfaces, which follows the same rules beside the dumps of the complete table. A
/// dump of the complete table makes them unnecessary.
package struct DumpSchedule: Sendable {
    /// How a dump ended.
    package enum End: Hashable, Sendable {
        case complete
        /// The kernel's table changed meanwhile (NLM_F_DUMP_INTR), or the dump failed in a way that may pass.
        case interrupted
    }

    /// What is to be done with a dump that ended.
    package enum Verdict: Hashable, Sendable {
        /// It is the truth.
        case accept
        /// It is better than nothing.
        case acceptPartial
        /// It is forgotten; another follows soon.
        case again
    }

    private struct Table: Sendable {
        var wantedFrom: Int64?
        var lastStart: Int64?
        var tries = 0
        var partials = 0
        var isDoubtful = false
        // The interfaces whose routes are stale, and from when each may be dumped.
        var interfaces: [UInt32: Int64] = [:]
        var lastInterfaceStart: Int64?

        var due: Int64? { [wantedFrom, interfaces.values.min()].compactMap(\.self).min() }
    }

    /// More stale interfaces than this are one reason for a dump of the complete table.
    static let interfaceLimit = 8

    /// The least time between the starts of two dumps of a table, but for repeated interrupted ones.
    static let interval: Int64 = 1_000_000_000
    /// Interrupted dumps are repeated this many times.
    static let retries = 5
    private static let retryStep: UInt64 = 20_000_000

    // By the table's number.
    private var tables = [Table](repeating: Table(), count: KernelTable.allCases.count)
    package private(set) var running: KernelTable?
    /// The interface whose routes the running dump is of; `nil` for a complete table.
    package private(set) var runningInterface: UInt32?

    package init() {}

    /// Asks for a dump of a table.
    package mutating func want(_ table: KernelTable, at now: Int64) {
        let earliest = self[table].lastStart.map { max(now, $0 + Self.interval) } ?? now
        self[table].wantedFrom = min(self[table].wantedFrom ?? .max, earliest)
    }

    /// Asks for a dump of the routes over one interface.
    package mutating func want(_ routes: StaleRoutes, at now: Int64) {
        let table = KernelTable.routes(routes.family)
        var state = self[table]
        let earliest = state.lastInterfaceStart.map { max(now, $0 + Self.interval) } ?? now
        state.interfaces[routes.interface] = min(state.interfaces[routes.interface] ?? .max, earliest)
        let isTooMany = state.interfaces.count > Self.interfaceLimit
        if isTooMany { state.interfaces = [:] }
        self[table] = state
        if isTooMany { want(table, at: now) }
    }

    /// Asks for all tables, as soon as they may be.
    package mutating func wantAll(at now: Int64) {
        for table in KernelTable.allCases { want(table, at: now) }
    }

    /// The table whose dump begins now, of ``runningInterface`` alone if that is set; `nil` when one is running or none is due.
    package mutating func next(at now: Int64) -> KernelTable? {
        guard running == nil else { return nil }
        guard let due = KernelTable.allCases.first(where: { self[$0].due.map { $0 <= now } ?? false }) else { return nil }
        var state = self[due]
        if state.wantedFrom.map({ $0 <= now }) ?? false {
            state.wantedFrom = nil
            state.lastStart = now
            state.interfaces = [:]
            runningInterface = nil
        } else {
            // In a fixed order, so that a recording can be run again.
            runningInterface = state.interfaces.min { ($0.value, $0.key) < ($1.value, $1.key) }?.key
            if let runningInterface { state.interfaces[runningInterface] = nil }
            state.lastInterfaceStart = now
        }
        self[due] = state
        running = due
        return due
    }

    /// The running dump ended. `draw` is any random number.
    package mutating func finished(_ end: End, draw: UInt64, at now: Int64) -> Verdict {
        guard let table = running else { return .accept }
        var state = self[table]
        let interface = runningInterface
        (running, runningInterface) = (nil, nil)
        defer { self[table] = state }
        switch end {
        case .complete where interface != nil:
            state.tries = 0
            return .accept
        case .complete:
            state.tries = 0
            state.partials = 0
            state.isDoubtful = false
            return .accept
        case .interrupted where state.tries < Self.retries:
            state.tries += 1
            let jitter = Int64(draw % (Self.retryStep * UInt64(1 << state.tries)))
            if let interface {
                state.interfaces[interface] = min(state.interfaces[interface] ?? .max, now + jitter)
            } else {
                state.wantedFrom = min(state.wantedFrom ?? .max, now + jitter)
            }
            return .again
        case .interrupted:
            state.tries = 0
            state.partials = min(state.partials + 1, 5)
            state.isDoubtful = true
            // 2, 4, 8, 16, 32 s: a table that never rests must not keep the machine busy.
            state.wantedFrom = min(state.wantedFrom ?? .max, now + Self.interval << Int64(state.partials))
            return .acceptPartial
        }
    }

    /// When ``next(at:)`` has something, at the earliest; `nil` for never, and while a dump runs.
    package var deadline: Int64? {
        running == nil ? tables.lazy.compactMap(\.due).min() : nil
    }

    /// Whether nothing runs and nothing is wanted.
    package var isQuiet: Bool { running == nil && tables.allSatisfy { $0.due == nil } }

    /// Whether what is known of some table is a partial result.
    package var isDoubtful: Bool { tables.contains { $0.isDoubtful } }

    /// Whether a dump of this table runs or is wanted.
    package func isPending(_ table: KernelTable) -> Bool { running == table || self[table].due != nil }

    private subscript(table: KernelTable) -> Table {
        get { tables[Int(table.rawValue)] }
        set { tables[Int(table.rawValue)] = newValue }
    }
}
