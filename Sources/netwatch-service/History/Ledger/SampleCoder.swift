/// The values that the next sample of a target has if nothing changes: the same interval, state, round trip and response time.
struct SamplePrediction: Sendable {
    private var time: Int64
    /// The expected time of the next sample.
    private var expected: Int64
    private var interval: Int64 = 0
    private var state = RecordedState.unknown
    private var isLost = false
    /// The expected place of the round trip on the ``RoundTripScale``.
    private var roundTrip: UInt32 = 0
    /// Whether answered samples have no response time.
    private var lacksResponseTime = false
    /// The expected place of the response time on the ``RoundTripScale``.
    private var responseTime: UInt32 = 0
    private let format: SampleFormat

    /// Creates the prediction of a first sample at a time.
    init(_ time: Int64, _ format: SampleFormat) {
        self.format = format
        self.time = SampleBlock.limited(time)
        expected = self.time
    }

    /// Appends a sample as its difference from the prediction, and predicts the next one.
    mutating func append(_ sample: Sample, to writer: inout BitWriter, _ codes: inout SampleCodes) {
        let hasResponseTimes = format == .responseTimes
        let isOther =
            !sample.isResult || sample.state != state || (sample.roundTrip == nil) != isLost
            || hasResponseTimes && sample.roundTrip != nil && (sample.responseTime == nil) != lacksResponseTime
        writer.append(isOther)
        if isOther {
            writer.append(UInt64(sample.state.rawValue), bits: 3)
            writer.append(sample.roundTrip == nil)
            if sample.roundTrip == nil {
                writer.append(sample.isResult)
            } else if hasResponseTimes {
                writer.append(sample.responseTime == nil)
            }
        }
        let newTime = SampleBlock.limited(sample.time)
        guard sample.isResult else {
            // It does not belong to the schedule of the probes.
            writer.append(signed: newTime &- time)
            state = sample.state
            return
        }
        codes.time.append(ZigZag.encode(newTime &- expected), to: &writer)
        let place = sample.roundTrip.map(RoundTripScale.place)
        if let place { codes.roundTrip.append(ZigZag.encode(Int64(place) - Int64(roundTrip)), to: &writer) }
        let responsePlace = hasResponseTimes ? sample.responseTime.map(RoundTripScale.place) : nil
        if let responsePlace {
            codes.responseTime.append(ZigZag.encode(Int64(responsePlace) - Int64(responseTime)), to: &writer)
        }
        advance(to: newTime, sample.state, place, responsePlace)
    }

    /// Reads a sample, and predicts the next one; `nil` if the bits are those of no sample.
    mutating func next(from reader: inout BitReader, _ codes: inout SampleCodes) -> Sample? {
        guard let isOther = reader.nextFlag() else { return nil }
        var (newState, lost, lacksResponse) = (state, isLost, lacksResponseTime)
        if isOther {
            guard let number = reader.next(bits: 3), let state = RecordedState(rawValue: UInt8(truncatingIfNeeded: number)),
                let flag = reader.nextFlag()
            else { return nil }
            (newState, lost) = (state, flag)
            if lost {
                guard let isResult = reader.nextFlag() else { return nil }
                if !isResult { return nextChange(to: newState, from: &reader) }
            } else if format == .responseTimes {
                guard let flag = reader.nextFlag() else { return nil }
                lacksResponse = flag
            }
        }
        guard let difference = codes.time.next(from: &reader).map(ZigZag.decode) else { return nil }
        let newTime = expected &+ difference
        guard newTime == SampleBlock.limited(newTime) else { return nil }
        var (measured, response): (Time?, Time?)
        if !lost {
            guard let time = Self.nextTime(after: roundTrip, &codes.roundTrip, &reader) else { return nil }
            measured = time
            if format == .responseTimes, !lacksResponse {
                guard let time = Self.nextTime(after: responseTime, &codes.responseTime, &reader) else { return nil }
                response = time
            }
        }
        advance(to: newTime, newState, measured?.place, response?.place)
        return Sample(time: newTime, state: newState, exactRoundTrip: measured?.value, exactResponseTime: response?.value)
    }

    /// A value of the ``RoundTripScale`` and its place.
    private typealias Time = (place: UInt32, value: UInt32)

    private static func nextTime(after predicted: UInt32, _ code: inout RiceCode, _ reader: inout BitReader) -> Time? {
        guard let change = code.next(from: &reader).map(ZigZag.decode), let place = UInt32(exactly: Int64(predicted) &+ change),
            let value = RoundTripScale.value(at: place)
        else { return nil }
        return (place, value)
    }

    private mutating func nextChange(to newState: RecordedState, from reader: inout BitReader) -> Sample? {
        guard let difference = reader.nextSigned() else { return nil }
        let newTime = time &+ difference
        guard newTime == SampleBlock.limited(newTime) else { return nil }
        state = newState
        return Sample(changeAt: newTime, to: newState)
    }

    /// Follows the schedule of the probes: half of each deviation is taken for the schedule's, half for that of the sample.
    private mutating func advance(to newTime: Int64, _ newState: RecordedState, _ place: UInt32?, _ responsePlace: UInt32?) {
        let observed = newTime &- time
        let deviation = newTime &- expected
        if interval <= 0 || deviation.magnitude > max(1_000, UInt64(interval) / 4) {
            interval = observed
            expected = newTime &+ observed
        } else {
            expected = expected &+ deviation / 2 &+ interval
            interval = interval &+ deviation / 8
        }
        expected = SampleBlock.limited(expected)
        interval = SampleBlock.limited(interval)
        (time, state, isLost) = (newTime, newState, place == nil)
        guard let place else { return }
        // A mean of the last places is a better prediction than the last one.
        roundTrip = roundTrip == 0 ? place : (roundTrip * 3 + place + 2) / 4
        lacksResponseTime = responsePlace == nil
        guard let responsePlace else { return }
        responseTime = responseTime == 0 ? responsePlace : (responseTime * 3 + responsePlace + 2) / 4
    }
}

/// The codes of the differences of samples.
struct SampleCodes: Sendable {
    var time = RiceCode()
    var roundTrip = RiceCode()
    var responseTime = RiceCode()
}
