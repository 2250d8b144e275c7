/// The ledgers of all targets, by their numbers in the history. Equal events make equal summaries.
struct LedgerBook: Sendable {
    /// The summaries of the periods that ended.
    struct Ended: Sendable {
        var hours: [(target: Int, summary: PeriodSummary)] = []
        var days: [(target: Int, summary: PeriodSummary)] = []
    }

    private var calendar: DayCalendar
    private var ledgers: [Int: TargetLedger]
    private var hourEnd: Int64 = .min

    init(calendar: DayCalendar, ledgers: [Int: TargetLedger] = [:]) { (self.calendar, self.ledgers) = (calendar, ledgers) }

    func ledger(of target: Int) -> TargetLedger? { ledgers[target] }

    mutating func frame(at time: Int64) -> BarFrame { BarFrame(at: time, in: &calendar) }

    mutating func apply(_ event: HistoryEvent, ended: inout Ended) {
        switch event {
        case .begin(let target, let state, let time):
            if ledgers[target] == nil || time < ledgers[target]?.end ?? time {
                ledgers[target] = TargetLedger(state, at: time, in: &calendar)
            } else {
                account(target, &ended) { $0.skip($0.end..<max($0.end, time), in: &$1) }
                account(target, &ended) { $0.change(to: state, at: time, in: &$1) }
            }
        case .sample(let target, let sample): account(target, &ended) { $0.add(sample, in: &$1) }
        case .change(let target, let state, let time): account(target, &ended) { $0.change(to: state, at: time, in: &$1) }
        case .end(let target, let time):
            account(target, &ended) { $0.advance(to: time, in: &$1) }
            ledgers[target] = nil
        case .gap(let gap):
            for target in ledgers.keys.sorted() { account(target, &ended) { $0.skip(gap.period, in: &$1) } }
        }
    }

    /// Accounts the time until now, if an hour has ended.
    mutating func advance(to time: Int64, ended: inout Ended) {
        guard time >= hourEnd || time < hourEnd - 3_600_000 else { return }
        hourEnd = TargetLedger.hour(containing: time).upperBound
        for target in ledgers.keys.sorted() { account(target, &ended) { $0.advance(to: time, in: &$1) } }
    }

    /// Accounts the time of all targets until now.
    mutating func advanceAll(to time: Int64, ended: inout Ended) {
        for target in ledgers.keys.sorted() { account(target, &ended) { $0.advance(to: time, in: &$1) } }
    }

    private mutating func account(
        _ target: Int, _ ended: inout Ended, _ body: (inout TargetLedger, inout DayCalendar) -> TargetLedger.Ended
    ) {
        // In place: a copy of the ledger would copy its distributions of round trips.
        guard let place = ledgers.index(forKey: target) else { return }
        let result = body(&ledgers.values[place], &calendar)
        ended.hours += result.hours.map { (target, $0) }
        ended.days += result.days.map { (target, $0) }
    }
}
