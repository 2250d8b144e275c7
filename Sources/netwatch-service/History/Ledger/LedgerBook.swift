import Pacing

/// The ledgers of all targets, and what their turns add to the database: blocks of samples, ended hours and days, gaps.
struct LedgerBook: Sendable {
    /// A longer time without an event of a target was not recorded. It keeps a wrong clock from making millions of hours.
    static let longestSilence: Int64 = 48 * 3_600_000

    /// The ledger of a target.
    struct Entry: Sendable {
        var ledger: TargetLedger
        /// Whether the target is monitored.
        var isActive: Bool
    }

    /// The samples of a target in an hour.
    struct Block: Sendable {
        var target: Int
        /// The start of the hour in milliseconds since 1970.
        var hour: Int64
        var samples: SampleBlock.Builder
    }

    /// A summary of a target.
    struct Summary: Hashable, Sendable {
        var target: Int
        var summary: PeriodSummary
    }

    /// The rows that the database does not have.
    struct Output: Sendable {
        var blocks: [Block] = []
        var hours: [Summary] = []
        var days: [Summary] = []
        var gaps: [HistoryGap] = []
    }

    // By the number of the target.
    private(set) var entries: [Entry?]
    private(set) var output = Output()
    private var open: [Block?]
    private var calendar: DayCalendar
    /// The time of the last turn.
    private(set) var time: ClockReading?
    /// The targets of the applied samples and the only ones that make blocks; `nil` for all.
    private let selection: Set<Int>?

    /// - Parameters:
    ///   - entries: the ledgers by the number of the target. Events of targets beyond them are ignored.
    ///   - calendar: the days.
    ///   - selection: the targets whose samples make blocks; `nil` for all.
    init(_ entries: [Entry?], _ calendar: DayCalendar, blocksOf selection: Set<Int>? = nil) {
        (self.entries, self.calendar, self.selection) = (entries, calendar, selection)
        open = Array(repeating: nil, count: entries.count)
    }

    /// Makes room for the targets up to a number.
    mutating func reserve(_ number: Int) {
        guard number >= entries.count else { return }
        entries += Array(repeating: nil, count: number + 1 - entries.count)
        open += Array(repeating: nil, count: number + 1 - open.count)
    }

    /// Takes the output since the last call.
    mutating func takeOutput() -> Output {
        defer { output = Output() }
        return output
    }

    /// Accounts the events of a turn.
    mutating func apply(_ turn: HistoryTurn) {
        let limit = max(turn.time.wall, time?.wall ?? turn.time.wall)
        for event in turn.events {
            switch event {
            case .begin(let target, let state, let moment): begin(target, state, min(moment, limit))
            case .sample(let target, var sample):
                sample.time = min(sample.time, limit)
                guard entries.indices.contains(target), entries[target] != nil else { continue }
                bridge(target, to: sample.time)
                addToBlock(sample, of: target)
                add(entries[target]?.ledger.add(sample, in: &calendar), of: target)
            case .change(let target, let state, let moment):
                guard entries.indices.contains(target) else { continue }
                bridge(target, to: min(moment, limit))
                change(target, to: state, at: min(moment, limit))
            case .outageLimit(let target, let time):
                if entries.indices.contains(target) { entries[target]?.ledger.setOutageLimit(time) }
            case .end(let target, let moment): end(target, min(moment, limit))
            case .gap(let gap): skip(gap, limit)
            }
        }
        time = turn.time
    }

    /// Accounts the time of all monitored targets until the last turn.
    mutating func advance() {
        guard let time else { return }
        for target in entries.indices where entries[target]?.isActive == true {
            bridge(target, to: time.wall)
            add(entries[target]?.ledger.advance(to: time.wall, in: &calendar), of: target)
        }
    }

    /// Accounts the time of all monitored targets until the last turn, and completes the output.
    ///
    /// - Parameter stops: whether the service has stopped: no target is monitored.
    mutating func finish(stops: Bool) {
        advance()
        for target in entries.indices {
            if stops { entries[target]?.isActive = false }
            if let block = open[target] { output.blocks.append(block) }
            open[target] = nil
        }
    }

    /// The blocks that the database does not have, in their order for each target. The last one of a target can still grow.
    ///
    /// - Parameters:
    ///   - target: the number of the only target; `nil` for all.
    ///   - hour: the start of the only hour; `nil` for all.
    /// - Returns: the blocks.
    func blocks(of target: Int? = nil, hour: Int64? = nil) -> [Block] {
        func isWanted(_ block: Block) -> Bool { (target ?? block.target) == block.target && (hour ?? block.hour) == block.hour }
        var growing: [Block] = []
        if let target {
            if open.indices.contains(target), let block = open[target] { growing = [block] }
        } else {
            growing = open.compactMap { $0 }
        }
        return output.blocks.filter(isWanted) + growing.filter(isWanted)
    }

    // MARK: Events

    private mutating func begin(_ target: Int, _ state: RecordedState, _ moment: Int64) {
        guard entries.indices.contains(target) else { return }
        guard entries[target] != nil else {
            entries[target] = Entry(ledger: TargetLedger(state, at: moment, in: &calendar), isActive: true)
            mark(target, state, at: moment)
            return
        }
        skip(target, to: moment)
        change(target, to: state, at: moment)
        entries[target]?.isActive = true
    }

    private mutating func change(_ target: Int, to state: RecordedState, at moment: Int64) {
        guard let ledger = entries[target]?.ledger else { return }
        if ledger.state != state { mark(target, state, at: max(moment, ledger.end)) }
        add(entries[target]?.ledger.change(to: state, at: moment, in: &calendar), of: target)
    }

    private mutating func end(_ target: Int, _ moment: Int64) {
        guard entries.indices.contains(target), entries[target]?.isActive == true else { return }
        bridge(target, to: moment)
        add(entries[target]?.ledger.advance(to: moment, in: &calendar), of: target)
        entries[target]?.isActive = false
    }

    private mutating func skip(_ gap: HistoryGap, _ limit: Int64) {
        let end = min(gap.period.upperBound, limit)
        guard gap.period.lowerBound < end else { return }
        output.gaps.append(HistoryGap(period: gap.period.lowerBound..<end, reason: gap.reason))
        for target in entries.indices where entries[target]?.isActive == true {
            // The turns before and after a stop are applied in one pass if no checkpoint could be made at the start.
            guard gap.reason != .stopped else {
                self.end(target, gap.period.lowerBound)
                continue
            }
            bridge(target, to: gap.period.lowerBound)
            skip(target, gap.period.lowerBound..<end)
        }
    }

    /// Accounts a long time without events as not recorded.
    private mutating func bridge(_ target: Int, to moment: Int64) {
        guard let end = entries[target]?.ledger.end, moment > end, moment - end > Self.longestSilence else { return }
        skip(target, to: moment)
    }

    private mutating func skip(_ target: Int, to moment: Int64) {
        guard let end = entries[target]?.ledger.end, end < moment else { return }
        skip(target, end..<moment)
    }

    private mutating func skip(_ target: Int, _ gap: Range<Int64>) {
        guard let ledger = entries[target]?.ledger, ledger.end < gap.upperBound else { return }
        let start = max(ledger.end, gap.lowerBound)
        mark(target, .notRecorded, at: start)
        add(entries[target]?.ledger.skip(gap, in: &calendar), of: target)
        let hour = TargetLedger.hour(containing: gap.upperBound).lowerBound
        if start < hour { mark(target, .notRecorded, at: hour) }
        mark(target, ledger.state, at: gap.upperBound)
    }

    private mutating func add(_ ended: TargetLedger.Ended?, of target: Int) {
        guard let ended else { return }
        for hour in ended.hours { output.hours.append(Summary(target: target, summary: hour)) }
        for day in ended.days { output.days.append(Summary(target: target, summary: day)) }
    }

    /// Notes a change of the state without a result in the block of its hour.
    private mutating func mark(_ target: Int, _ state: RecordedState, at moment: Int64) {
        addToBlock(Sample(changeAt: moment, to: state), of: target)
    }

    /// Adds a sample that is not accounted yet, or that was accounted last.
    private mutating func addToBlock(_ sample: Sample, of target: Int) {
        guard selection?.contains(target) != false else { return }
        let hour = TargetLedger.hour(containing: sample.time).lowerBound
        if let block = open[target], block.hour != hour || block.samples.isFull {
            output.blocks.append(block)
            open[target] = nil
        }
        if open[target] == nil {
            var block = Block(target: target, hour: hour, samples: SampleBlock.Builder())
            if let first = firstState(of: target, in: hour, before: sample.time) { block.samples.append(first) }
            open[target] = block
        }
        open[target]?.samples.append(sample)
    }

    /// Returns the state of a target at the start of an hour, or at its own start in this hour; `nil` if that is later.
    private func firstState(of target: Int, in hour: Int64, before time: Int64) -> Sample? {
        guard let ledger = entries[target]?.ledger else { return nil }
        let current = ledger.currentHour
        // Time that was not recorded has no samples, as after a withdrawal.
        let start = current.period.lowerBound == hour ? ledger.end - current.times.total + current.times[.notRecorded] : hour
        return start < time && current.period.lowerBound <= hour ? Sample(changeAt: start, to: ledger.state) : nil
    }
}
