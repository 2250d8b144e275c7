/// The turns that wait for the log, for a limited time. Beyond it the samples of the oldest turns are dropped.
struct TurnQueue: Sendable {
    private let limit: Int64
    private var turns: [HistoryTurn] = []
    private var dropped: DroppedTurns?
    /// The time of the last turn that was taken, in milliseconds since 1970.
    private var taken: Int64
    /// The number of dropped samples.
    private(set) var droppedSamples = 0

    /// - Parameters:
    ///   - limit: the maximum time from the first turn to the last one, in milliseconds.
    ///   - start: the present time in milliseconds since 1970.
    init(limit: Int64, start: Int64) { (self.limit, taken) = (limit, start) }

    var isEmpty: Bool { turns.isEmpty && dropped == nil }

    mutating func append(_ turn: HistoryTurn) {
        turns.append(turn)
        // The monotonic clock: a wall clock that is set forward drops nothing.
        let oldest = turns.firstIndex { turn.time.monotonic - $0.time.monotonic <= limit } ?? turns.endIndex - 1
        guard oldest > 0 else { return }
        for turn in turns[..<oldest] {
            let before = dropped?.samples ?? 0
            dropped.add(turn, after: taken)
            droppedSamples += (dropped?.samples ?? 0) - before
        }
        turns.removeFirst(oldest)
    }

    /// Removes and returns all turns, and those before them that were dropped.
    mutating func takeAll() -> (dropped: DroppedTurns?, turns: [HistoryTurn]) {
        defer { (dropped, turns) = (nil, []) }
        taken = turns.last?.time.wall ?? dropped?.time.wall ?? taken
        return (dropped, turns)
    }
}
