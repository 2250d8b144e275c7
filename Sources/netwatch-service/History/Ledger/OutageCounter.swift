/// Counts the outages of a target: times in which it is down or unreachable that have lasted long enough.
///
/// ```
///             down, unreachable              the failure has lasted `limit`
///   working ────────────────────▶ failing ──────────────────────────────────▶ counted
///      ▲                             │                                           │
///      └─────────────────────────────┴───────────── another state ◀─────────────┘
/// ```
///
/// A time that was not recorded neither begins nor ends an outage, and is no part of it.
struct OutageCounter: Hashable, Sendable {
    private enum Phase: Hashable, Sendable {
        case working
        /// The failure has lasted for this time, in milliseconds.
        case failing(Int64)
        case counted
    }

    /// The time that a failure lasts before it is an outage, in milliseconds.
    var limit: Int64 = 0
    private var phase = Phase.working

    /// Creates a counter. - Parameter isCounted: whether an outage exists, and was counted.
    init(limit: Int64 = 0, isCounted: Bool = false) {
        self.limit = limit
        if isCounted { phase = .counted }
    }

    /// Whether an outage exists, which was counted.
    var isCounted: Bool { phase == .counted }

    /// Changes the state. - Returns: Whether an outage counts now, because none must last.
    mutating func change(to state: RecordedState) -> Bool {
        if state.isOutage {
            guard phase == .working else { return false }
            phase = limit > 0 ? .failing(0) : .counted
            return isCounted
        }
        if state != .notRecorded { phase = .working }
        return false
    }

    /// Accounts time in a state. - Returns: Whether an outage counts now.
    mutating func advance(by duration: Int64, in state: RecordedState) -> Bool {
        guard state.isOutage, case .failing(let lasted) = phase else { return false }
        phase = lasted + duration >= limit ? .counted : .failing(lasted + duration)
        return isCounted
    }
}

extension OutageCounter {
    /// Appends the limit and the phase: 0 for none, 1 for a counted outage, and 2 more than the time of a failure.
    func append(to writer: inout VarintWriter) {
        writer.append(UInt64(clamping: limit))
        switch phase {
        case .working: writer.append(0)
        case .counted: writer.append(1)
        case .failing(let lasted): writer.append(UInt64(clamping: lasted) + 2)
        }
    }

    /// Reads an encoded counter; `nil` if the bytes are those of none.
    init?(_ reader: inout VarintReader) {
        guard let limit = reader.next(), limit <= 1 << 40, let phase = reader.next(), phase <= 1 << 40 else { return nil }
        self.init(limit: Int64(limit), isCounted: phase == 1)
        if phase > 1 { self.phase = .failing(Int64(phase) - 2) }
    }
}
