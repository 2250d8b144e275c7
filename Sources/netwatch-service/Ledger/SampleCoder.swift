/// The values that the next sample of a target has if nothing changes: the same interval, state and round trip.
struct SamplePrediction: Sendable {
    private var time: Int64
    /// The expected time of the next sample.
    private var expected: Int64
    private var interval: Int64 = 0
    private var state = RecordedState.unknown
    private var isLost = false
    private var roundTrip: UInt32 = 0

    /// Creates the prediction of a first sample at a time.
    init(_ time: Int64) {
        self.time = SampleBlock.limited(time)
        expected = self.time
    }

    /// Appends a sample as its difference from the prediction, and predicts the next one.
    mutating func append(_ sample: Sample, to writer: inout BitWriter, _ codes: inout SampleCodes) {
        let isOther = sample.state != state || (sample.roundTrip == nil) != isLost
        writer.append(isOther)
        if isOther {
            writer.append(UInt64(sample.state.rawValue), bits: 3)
            writer.append(sample.roundTrip == nil)
        }
        let newTime = SampleBlock.limited(sample.time)
        codes.time.append(ZigZag.encode(newTime &- expected), to: &writer)
        if let value = sample.roundTrip {
            codes.roundTrip.append(ZigZag.encode(Int64(value) - Int64(roundTrip)), to: &writer)
        }
        advance(Sample(time: newTime, state: sample.state, roundTrip: sample.roundTrip))
    }

    /// Reads a sample, and predicts the next one; `nil` if the bits are those of no sample.
    mutating func next(from reader: inout BitReader, _ codes: inout SampleCodes) -> Sample? {
        guard let isOther = reader.nextFlag() else { return nil }
        var (newState, lost) = (state, isLost)
        if isOther {
            guard let number = reader.next(bits: 3), let state = RecordedState(rawValue: UInt8(truncatingIfNeeded: number)),
                let flag = reader.nextFlag()
            else { return nil }
            (newState, lost) = (state, flag)
        }
        guard let difference = codes.time.next(from: &reader).map(ZigZag.decode) else { return nil }
        let newTime = expected &+ difference
        guard newTime == SampleBlock.limited(newTime) else { return nil }
        var value: UInt32?
        if !lost {
            guard let change = codes.roundTrip.next(from: &reader).map(ZigZag.decode),
                let exact = UInt32(exactly: Int64(roundTrip) &+ change)
            else { return nil }
            value = exact
        }
        let sample = Sample(time: newTime, state: newState, roundTrip: value)
        advance(sample)
        return sample
    }

    /// Follows the schedule of the probes: half of each deviation is taken for the schedule's, half for that of the sample.
    private mutating func advance(_ sample: Sample) {
        let observed = sample.time &- time
        let deviation = sample.time &- expected
        if interval <= 0 || deviation.magnitude > max(1_000, UInt64(interval) / 4) {
            interval = observed
            expected = sample.time &+ observed
        } else {
            expected = expected &+ deviation / 2 &+ interval
            interval = interval &+ deviation / 8
        }
        expected = SampleBlock.limited(expected)
        interval = SampleBlock.limited(interval)
        (time, state, isLost) = (sample.time, sample.state, sample.roundTrip == nil)
        guard let value = sample.roundTrip else { return }
        // The mean of the last value and of those before it is a better prediction than the last value.
        roundTrip = roundTrip == 0 ? value : UInt32((UInt64(roundTrip) + UInt64(value)) / 2)
    }
}

/// The codes of the differences of samples.
struct SampleCodes: Sendable {
    var time = RiceCode()
    var roundTrip = RiceCode()
}
