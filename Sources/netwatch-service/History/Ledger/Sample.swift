/// A result of a probe in the history, or a change of the state without one.
struct Sample: Hashable, Sendable {
    /// The unit of round trips and response times in microseconds.
    static let roundTripUnit = 10

    /// The wall clock in milliseconds since 1970.
    var time: Int64
    /// The state of the target from this time on.
    var state: RecordedState
    /// The round trip in units of 10 µs, at least 1, as a value of ``RoundTripScale``; `nil` if the probe failed.
    let roundTrip: UInt32?
    /// The response time in the same unit, as a value of ``RoundTripScale``; `nil` if the probe failed, and in the history of earlier
    /// versions.
    let responseTime: UInt32?
    /// Whether a probe had a result. Otherwise only the state changed, as by a maintenance window or a gap.
    let isResult: Bool

    /// Creates the result of a probe, from times in units of 10 µs with any number of digits. A failed probe has neither.
    init(time: Int64, state: RecordedState, roundTrip: UInt32?, responseTime: UInt32? = nil) {
        self.init(
            time: time, state: state, exactRoundTrip: roundTrip.map(RoundTripScale.rounded),
            exactResponseTime: responseTime.map(RoundTripScale.rounded))
    }

    /// Creates the result of a probe, from times that are values of ``RoundTripScale``.
    init(time: Int64, state: RecordedState, exactRoundTrip: UInt32?, exactResponseTime: UInt32?) {
        (self.time, self.state, roundTrip, isResult) = (time, state, exactRoundTrip, true)
        responseTime = exactRoundTrip == nil ? nil : exactResponseTime
    }

    /// Creates a change of the state.
    init(changeAt time: Int64, to state: RecordedState) {
        (self.time, self.state, roundTrip, responseTime, isResult) = (time, state, nil, nil, false)
    }
}

/// The version of an encoding of samples.
enum SampleFormat: UInt64, Hashable, Sendable {
    /// Samples have round trips alone.
    case roundTrips = 1
    /// Samples also have response times.
    case responseTimes = 2
}

/// The samples of a target in one hour, in 1 to 4 bytes each.
///
/// The block begins with its version, the time of its first sample, and the number of samples, as LEB128 numbers. The samples follow
/// as bits: each is the difference from its ``SamplePrediction``. A CRC-32 ends the block.
///
/// The first sample is the state at the start of the hour, or at the target's start, and each change of the state without a result is a
/// sample too. A block is therefore the ``HourTimeline`` of its target.
struct SampleBlock: Hashable, Sendable {
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

    /// Encodes samples, in the order of their times. At most ``limit`` are encoded. Tests create blocks of an earlier format.
    init(_ samples: some Collection<Sample>, _ format: SampleFormat = .responseTimes) {
        var builder = Builder(format)
        for sample in samples.prefix(Self.limit) { builder.append(sample) }
        self = builder.block
    }

    fileprivate init(_ format: SampleFormat, _ first: Int64, count: Int, _ bits: BitWriter) {
        var writer = VarintWriter()
        writer.append(format.rawValue)
        writer.append(signed: first)
        writer.append(UInt64(count))
        let content = writer.bytes + bits.bytes
        bytes = content + CRC32.bytes(of: content)
    }

    /// Returns a time within ``timeLimit``.
    static func limited(_ time: Int64) -> Int64 { min(max(time, -timeLimit), timeLimit) }

    /// Accepts the bytes of a block, which may be damaged.
    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Decodes the samples, in the order in which they were accounted.
    ///
    /// - Throws: ``DamageError`` if the bytes are not those of an encoded block.
    func samples() throws(DamageError) -> [Sample] {
        guard bytes.count > 4, Array(bytes.suffix(4)) == CRC32.bytes(of: bytes.dropLast(4)) else { throw .checksum }
        var reader = VarintReader(bytes.dropLast(4))
        guard let format = reader.next().flatMap(SampleFormat.init) else { throw .version }
        guard let first = reader.nextSigned(), first == Self.limited(first), let count = reader.next(), count <= Self.limit else {
            throw .content
        }
        return try Self.samples(from: BitReader(reader.remaining), format, first: first, count: Int(count))
    }

    private static func samples(
        from reader: BitReader, _ format: SampleFormat, first: Int64, count: Int
    ) throws(DamageError) -> [Sample] {
        var bits = reader
        var (prediction, codes) = (SamplePrediction(first, format), SampleCodes())
        var samples: [Sample] = []
        // A sample has two bits or more, so a wrong count cannot reserve more memory than a block needs.
        samples.reserveCapacity(min(count, bits.remaining / 2))
        for _ in 0..<count {
            guard let sample = prediction.next(from: &bits, &codes) else { throw .content }
            samples.append(sample)
        }
        guard bits.isAtEnd else { throw .content }
        return samples
    }

    /// A block that grows by a sample at a time, and has its final size from the start.
    struct Builder: Sendable {
        private var first: Int64 = 0
        private(set) var count = 0
        private var bits = BitWriter()
        private let format: SampleFormat
        private var prediction: SamplePrediction
        private var codes = SampleCodes()

        init(_ format: SampleFormat = .responseTimes) {
            self.format = format
            prediction = SamplePrediction(0, format)
        }

        var isFull: Bool { count >= SampleBlock.limit }

        /// Appends a sample. A full block ignores it.
        mutating func append(_ sample: Sample) {
            guard !isFull else { return }
            if count == 0 {
                first = SampleBlock.limited(sample.time)
                prediction = SamplePrediction(first, format)
            }
            prediction.append(sample, to: &bits, &codes)
            count += 1
        }

        var block: SampleBlock { SampleBlock(format, first, count: count, bits) }

        /// The samples so far, without the checksum of a block.
        var samples: [Sample] {
            (try? SampleBlock.samples(from: BitReader(bits.bytes[...]), format, first: first, count: count)) ?? []
        }
    }
}

extension [Sample] {
    /// Returns the samples of a part of an hour and of the next part, which begins with the state that the first one ends with.
    func joined(with next: [Sample]) -> [Sample] {
        guard let last, let first = next.first, !first.isResult, first.state == last.state else { return self + next }
        return self + next.dropFirst()
    }
}
