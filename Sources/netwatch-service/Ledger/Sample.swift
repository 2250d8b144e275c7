/// A result of a probe in the history.
struct Sample: Hashable, Sendable {
    /// The unit of round trips in microseconds.
    static let roundTripUnit = 10

    /// The wall clock in milliseconds since 1970.
    var time: Int64
    /// The state of the target with this result.
    var state: RecordedState
    /// The round trip in units of 10 µs, at least 1; `nil` if the probe failed.
    var roundTrip: UInt32?
}

/// The samples of a target in one hour, in a few bytes each.
///
/// The block begins with its version, the time of its first sample, and the number of samples, as LEB128 numbers. Each sample
/// follows as:
/// - the change of the interval since the last sample in milliseconds (zigzag), times 2, plus 1 if the state has changed;
/// - the new state, if it has changed;
/// - 0 for a failed probe, and otherwise 1 plus the change of the round trip (zigzag).
///
/// A CRC-32 ends the block. A target that is probed every 10 s needs 2 to 4 bytes a sample.
struct SampleBlock: Hashable, Sendable {
    private static let version: UInt64 = 1
    /// The maximum number of samples of a block: a probe every 10 ms for an hour.
    static let limit = 360_000
    /// The greatest distance of a time from 1970: 9 million years. Later times are encoded as this one.
    static let timeLimit: Int64 = 1 << 58

    /// The reason why bytes are no block.
    enum DamageError: Error, Hashable {
        case checksum
        case version
        case content
    }

    let bytes: [UInt8]

    /// Encodes samples, in the order of their times. At most ``limit`` are encoded.
    init(_ samples: some Collection<Sample>) {
        var writer = VarintWriter()
        let samples = samples.prefix(Self.limit)
        var prediction = Prediction(Self.limited(samples.first?.time ?? 0))
        writer.append(Self.version)
        writer.append(signed: prediction.time)
        writer.append(UInt64(samples.count))
        for sample in samples {
            let change = prediction.change(of: sample)
            writer.append(ZigZag.encode(change.interval) << 1 | (change.state == nil ? 0 : 1))
            if let state = change.state { writer.append(UInt64(state.rawValue)) }
            writer.append(change.roundTrip.map { ZigZag.encode($0) + 1 } ?? 0)
        }
        bytes = writer.bytes + writer.checksum
    }

    /// Returns a time within ``timeLimit``.
    fileprivate static func limited(_ time: Int64) -> Int64 { min(max(time, -timeLimit), timeLimit) }

    /// Accepts the bytes of a block, which may be damaged.
    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Decodes the samples.
    ///
    /// - Throws: ``DamageError`` if the bytes are not those of an encoded block.
    func samples() throws(DamageError) -> [Sample] {
        guard bytes.count > 4, Array(bytes.suffix(4)) == CRC32.bytes(of: bytes.dropLast(4)) else { throw .checksum }
        var reader = VarintReader(bytes.dropLast(4))
        guard reader.next() == Self.version else { throw .version }
        guard let first = reader.nextSigned(), let count = reader.next(), count <= Self.limit else { throw .content }
        var prediction = Prediction(first)
        var samples: [Sample] = []
        // A sample has two bytes or more, so a wrong count cannot reserve more memory than a block needs.
        samples.reserveCapacity(min(Int(count), bytes.count / 2))
        for _ in 0..<count {
            guard let head = reader.next() else { throw .content }
            var state: RecordedState?
            if head & 1 == 1 {
                guard let number = reader.next(), number < 256, let changed = RecordedState(rawValue: UInt8(number)) else {
                    throw .content
                }
                state = changed
            }
            guard let trip = reader.next() else { throw .content }
            let change = Prediction.Change(
                interval: ZigZag.decode(head >> 1), state: state, roundTrip: trip == 0 ? nil : ZigZag.decode(trip - 1))
            guard let sample = prediction.sample(after: change) else { throw .content }
            samples.append(sample)
        }
        guard reader.isAtEnd else { throw .content }
        return samples
    }
}

/// The values that the next sample of a block has if nothing changes: the same interval, state and round trip.
private struct Prediction {
    private(set) var time: Int64
    private var interval: Int64 = 0
    private var state = RecordedState.unknown
    private var roundTrip: UInt32 = 0

    init(_ time: Int64) { self.time = time }

    struct Change {
        var interval: Int64
        var state: RecordedState?
        var roundTrip: Int64?
    }

    /// Returns the differences of a sample, and predicts the next one.
    mutating func change(of sample: Sample) -> Change {
        // A difference of two differences has 62 bits, its sign and the mark of a new state complete 64.
        let newTime = SampleBlock.limited(sample.time)
        let interval = newTime - time
        let change = Change(
            interval: interval - self.interval, state: sample.state == state ? nil : sample.state,
            roundTrip: sample.roundTrip.map { Int64($0) - Int64(roundTrip) })
        (time, self.interval, state) = (newTime, interval, sample.state)
        roundTrip = sample.roundTrip ?? roundTrip
        return change
    }

    /// Returns the sample with these differences; `nil` if its round trip is not possible.
    mutating func sample(after change: Change) -> Sample? {
        interval = interval &+ change.interval
        time = time &+ interval
        state = change.state ?? state
        guard let difference = change.roundTrip else { return Sample(time: time, state: state, roundTrip: nil) }
        guard let value = UInt32(exactly: Int64(roundTrip) &+ difference) else { return nil }
        roundTrip = value
        return Sample(time: time, state: state, roundTrip: value)
    }
}
