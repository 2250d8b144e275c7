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
    }

    /// The least time between the starts of two dumps of a table, but for repeated interrupted ones.
    static let interval: Int64 = 1_000_000_000
    /// Interrupted dumps are repeated this many times.
    static let retries = 5
    private static let retryStep: UInt64 = 20_000_000

    // By the table's number.
    private var tables = [Table](repeating: Table(), count: KernelTable.allCases.count)
    package private(set) var running: KernelTable?

    package init() {}

    /// Asks for a dump of a table.
    package mutating func want(_ table: KernelTable, at now: Int64) {
        let earliest = self[table].lastStart.map { max(now, $0 + Self.interval) } ?? now
        self[table].wantedFrom = min(self[table].wantedFrom ?? .max, earliest)
    }

    /// Asks for all tables, as soon as they may be.
    package mutating func wantAll(at now: Int64) {
        for table in KernelTable.allCases { want(table, at: now) }
    }

    /// The table whose dump begins now; `nil` when one is running or none is due.
    package mutating func next(at now: Int64) -> KernelTable? {
        guard running == nil else { return nil }
        let due = KernelTable.allCases.first { self[$0].wantedFrom.map { $0 <= now } ?? false }
        guard let due else { return nil }
        self[due].wantedFrom = nil
        self[due].lastStart = now
        running = due
        return due
    }

    /// The running dump ended. `draw` is any random number.
    package mutating func finished(_ end: End, draw: UInt64, at now: Int64) -> Verdict {
        guard let table = running else { return .accept }
        var state = self[table]
        running = nil
        defer { self[table] = state }
        switch end {
        case .complete:
            state.tries = 0
            state.partials = 0
            state.isDoubtful = false
            return .accept
        case .interrupted where state.tries < Self.retries:
            state.tries += 1
            let jitter = Int64(draw % (Self.retryStep * UInt64(1 << state.tries)))
            state.wantedFrom = min(state.wantedFrom ?? .max, now + jitter)
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
        running == nil ? tables.lazy.compactMap(\.wantedFrom).min() : nil
    }

    /// Whether nothing runs and nothing is wanted.
    package var isQuiet: Bool { running == nil && tables.allSatisfy { $0.wantedFrom == nil } }

    /// Whether what is known of some table is a partial result.
    package var isDoubtful: Bool { tables.contains { $0.isDoubtful } }

    /// Whether a dump of this table runs or is wanted.
    package func isPending(_ table: KernelTable) -> Bool { running == table || self[table].wantedFrom != nil }

    private subscript(table: KernelTable) -> Table {
        get { tables[Int(table.rawValue)] }
        set { tables[Int(table.rawValue)] = newValue }
    }
}
