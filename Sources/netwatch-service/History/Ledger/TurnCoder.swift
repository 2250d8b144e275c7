/// The encoding of turns in the log, in 1 to 4 bytes for a sample.
///
/// The coder of the writer and that of the reader pass through the same states, so each turn is encoded as its difference from the
/// turns before. Samples between other events are sorted by their targets, because most turns have the targets of the turn one interval
/// before. The order of one target's events is kept.
struct TurnCoder: Sendable {
    /// The numbers of targets are below this one.
    static let targetLimit = 1 << 20
    /// The greatest time before a failure is an outage, in milliseconds: more than the 365 days of a configuration.
    static let outageLimit: Int64 = 1 << 36
    /// No event needs more bytes.
    static let bytesPerEvent = 48
    /// No turn needs more bytes without its events.
    static let bytesPerTurn = 64

    private var time: ClockReading
    // By the number of the target.
    private var predictions: [SamplePrediction?] = []
    /// The target that followed a target at the last time; -1 for none.
    private var successors: [Int32] = []
    private var lastTarget = 0
    private var codes = SampleCodes()
    private var distance = RiceCode()

    private enum Kind: UInt64 {
        case none, begin, change, end, gap, outageLimit
    }

    private let format: SampleFormat

    /// Creates the coder of the first turn after a time.
    init(after time: ClockReading, _ format: SampleFormat = .responseTimes) {
        (self.time, self.format) = (Self.limited(time), format)
    }

    private static func limited(_ time: ClockReading) -> ClockReading {
        ClockReading(
            wall: SampleBlock.limited(time.wall), monotonic: SampleBlock.limited(time.monotonic),
            bootTime: SampleBlock.limited(time.bootTime))
    }

    // MARK: Writing

    mutating func encode(_ turn: HistoryTurn) -> [UInt8] {
        var writer = BitWriter()
        let new = Self.limited(turn.time)
        let wall = new.wall - time.wall
        let monotonic = new.monotonic - time.monotonic
        writer.append(signed: wall)
        writer.append(signed: monotonic - wall)
        writer.append(signed: new.bootTime - time.bootTime - monotonic)
        time = new
        var samples: [(target: Int, sample: Sample)] = []
        for event in turn.events {
            if case .sample(let target, let sample) = event {
                if 0..<Self.targetLimit ~= target, sample.isResult { samples.append((target, sample)) }
                continue
            }
            append(&samples, to: &writer)
            append(event, to: &writer)
        }
        append(&samples, to: &writer)
        writer.append(Kind.none.rawValue, bits: 3)
        return writer.bytes
    }

    /// Appends the number of samples and the samples, in the order of their targets.
    private mutating func append(_ samples: inout [(target: Int, sample: Sample)], to writer: inout BitWriter) {
        writer.append(number: UInt64(samples.count))
        // The sort is stable: it keeps the order of one target's samples.
        for (target, sample) in samples.sorted(by: { $0.target < $1.target }) {
            makeRoom(for: target)
            let isExpected = successors[lastTarget] == target
            writer.append(isExpected)
            if !isExpected { distance.append(ZigZag.encode(Int64(target - lastTarget)), to: &writer) }
            successors[lastTarget] = Int32(target)
            lastTarget = target
            var prediction = predictions[target] ?? SamplePrediction(time.wall, format)
            prediction.append(sample, to: &writer, &codes)
            predictions[target] = prediction
        }
        samples.removeAll(keepingCapacity: true)
    }

    private mutating func append(_ event: HistoryEvent, to writer: inout BitWriter) {
        func append(_ kind: Kind, _ target: Int, at moment: Int64) {
            writer.append(kind.rawValue, bits: 3)
            writer.append(number: UInt64(min(max(target, 0), Self.targetLimit)))
            writer.append(signed: SampleBlock.limited(moment) - time.wall)
        }
        switch event {
        case .sample: break
        case .begin(let target, let state, let moment):
            append(.begin, target, at: moment)
            writer.append(UInt64(state.rawValue), bits: 3)
        case .change(let target, let state, let moment):
            append(.change, target, at: moment)
            writer.append(UInt64(state.rawValue), bits: 3)
        case .outageLimit(let target, let limit):
            append(.outageLimit, target, at: time.wall)
            writer.append(number: UInt64(min(max(limit, 0), Self.outageLimit)))
        case .end(let target, let moment): append(.end, target, at: moment)
        case .gap(let gap):
            append(.gap, HistoryGap.Reason.allCases.firstIndex(of: gap.reason) ?? 0, at: gap.period.lowerBound)
            let start = SampleBlock.limited(gap.period.lowerBound)
            writer.append(number: UInt64(SampleBlock.limited(gap.period.upperBound) - start))
        }
        // A target out of range is decoded as one that does not exist.
    }

    private mutating func makeRoom(for target: Int) {
        // The last target is 0 at first.
        guard predictions.count <= target else { return }
        let missing = max(target, lastTarget) + 1 - predictions.count
        predictions.append(contentsOf: repeatElement(nil, count: missing))
        successors.append(contentsOf: repeatElement(-1, count: missing))
    }

    // MARK: Reading

    /// Decodes the next turn; `nil` if the bytes are those of none. The coder is not usable after that.
    mutating func decode(_ bytes: ArraySlice<UInt8>) -> HistoryTurn? {
        var reader = BitReader(bytes)
        guard let wall = reader.nextSigned(), let monotonic = reader.nextSigned(), let boot = reader.nextSigned() else {
            return nil
        }
        let new = ClockReading(
            wall: time.wall &+ wall, monotonic: time.monotonic &+ monotonic &+ wall,
            bootTime: time.bootTime &+ boot &+ monotonic &+ wall)
        guard new == Self.limited(new) else { return nil }
        time = new
        var turn = HistoryTurn(new)
        while true {
            guard readSamples(&reader, &turn.events), let number = reader.next(bits: 3), let kind = Kind(rawValue: number) else {
                return nil
            }
            if kind == .none { return reader.isAtEnd ? turn : nil }
            guard let event = readEvent(kind, &reader) else { return nil }
            turn.events.append(event)
        }
    }

    private mutating func readSamples(_ reader: inout BitReader, _ events: inout [HistoryEvent]) -> Bool {
        guard let count = reader.nextNumber(), count <= UInt64(reader.remaining) else { return false }
        for _ in 0..<count {
            guard let isExpected = reader.nextFlag() else { return false }
            let target: Int
            if isExpected {
                guard successors.indices.contains(lastTarget), successors[lastTarget] >= 0 else { return false }
                target = Int(successors[lastTarget])
            } else {
                guard let step = distance.next(from: &reader).map(ZigZag.decode),
                    let next = Int(exactly: Int64(lastTarget) &+ step), 0..<Self.targetLimit ~= next
                else { return false }
                target = next
            }
            makeRoom(for: target)
            successors[lastTarget] = Int32(target)
            lastTarget = target
            var prediction = predictions[target] ?? SamplePrediction(time.wall, format)
            guard let sample = prediction.next(from: &reader, &codes), sample.isResult else { return false }
            predictions[target] = prediction
            events.append(.sample(target: target, sample))
        }
        return true
    }

    private func readEvent(_ kind: Kind, _ reader: inout BitReader) -> HistoryEvent? {
        guard let target = reader.nextNumber().flatMap({ Int(exactly: $0) }), target <= Self.targetLimit,
            let offset = reader.nextSigned()
        else { return nil }
        let moment = time.wall &+ offset
        guard moment == SampleBlock.limited(moment) else { return nil }
        func state() -> RecordedState? { reader.next(bits: 3).flatMap { RecordedState(rawValue: UInt8($0)) } }
        switch kind {
        case .none: return nil
        case .begin: return state().map { .begin(target: target, $0, at: moment) }
        case .change: return state().map { .change(target: target, $0, at: moment) }
        case .outageLimit:
            return reader.nextNumber().flatMap { $0 <= UInt64(Self.outageLimit) ? .outageLimit(target: target, Int64($0)) : nil }
        case .end: return .end(target: target, at: moment)
        case .gap:
            let reasons = HistoryGap.Reason.allCases
            guard reasons.indices.contains(target), let length = reader.nextNumber(), length <= 1 << 59 else { return nil }
            return .gap(HistoryGap(period: moment..<moment + Int64(length), reason: reasons[target]))
        }
    }
}
