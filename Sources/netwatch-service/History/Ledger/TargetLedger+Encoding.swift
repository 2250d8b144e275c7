/// A ledger as bytes: its version, the values as LEB128 numbers, and a CRC-32. Those of version 1 have no outage counter.
extension TargetLedger {
    /// The encoded ledger. `isActive` is whether the target is monitored; tests create ledgers of an earlier format.
    func bytes(isActive: Bool, _ format: SampleFormat = .responseTimes) -> [UInt8] {
        var writer = VarintWriter()
        writer.append(format.rawValue)
        writer.append(isActive ? 1 : 0)
        writer.append(UInt64(state.rawValue))
        writer.append(signed: end)
        for summary in [currentHour, currentDay] { summary.append(to: &writer, format) }
        if format != .roundTrips { outages.append(to: &writer) }
        return writer.bytes + writer.checksum
    }

    /// Decodes a ledger; `nil` if the bytes are those of none.
    static func decode(_ bytes: [UInt8]) -> (ledger: TargetLedger, isActive: Bool)? {
        guard bytes.count > 4, Array(bytes.suffix(4)) == CRC32.bytes(of: bytes.dropLast(4)) else { return nil }
        var reader = VarintReader(bytes.dropLast(4))
        guard let format = reader.next().flatMap(SampleFormat.init), let active = reader.next(), active <= 1,
            let number = reader.next(), number < 8,
            let state = RecordedState(rawValue: UInt8(number)), let end = reader.nextSigned(), end == SampleBlock.limited(end),
            let hour = PeriodSummary(&reader, format), let day = PeriodSummary(&reader, format)
        else { return nil }
        let outages = format != .roundTrips ? OutageCounter(&reader) : OutageCounter(isCounted: state.isOutage)
        guard let outages, reader.isAtEnd else { return nil }
        // The accounting continues from the end, which is in the current hour and in the current day.
        guard hour.period == Self.hour(containing: end), day.period.contains(end) else { return nil }
        return (TargetLedger(state, end: end, hour: hour, day: day, outages: outages), active == 1)
    }
}

extension PeriodSummary {
    func append(to writer: inout VarintWriter, _ format: SampleFormat) {
        writer.append(signed: period.lowerBound)
        writer.append(UInt64(clamping: period.upperBound - period.lowerBound))
        for state in RecordedState.allCases { writer.append(UInt64(clamping: times[state])) }
        writer.append(UInt64(clamping: probes))
        writer.append(UInt64(clamping: lost))
        writer.append(UInt64(clamping: outages))
        writer.append(continuesOutage ? 1 : 0)
        roundTrips.append(to: &writer)
        if format == .responseTimes { responseTimes.append(to: &writer) }
    }

    /// Reads an encoded summary; `nil` if the bytes are those of none.
    init?(_ reader: inout VarintReader, _ format: SampleFormat) {
        guard let start = reader.nextSigned(), start == SampleBlock.limited(start), let length = reader.next(),
            length <= 1 << 40
        else { return nil }
        self.init(start..<start + Int64(length))
        for state in RecordedState.allCases {
            guard let time = reader.next(), time <= length else { return nil }
            times[state] = Int64(time)
        }
        guard let probes = reader.next(), probes <= 1 << 40, let lost = reader.next(), lost <= probes,
            let outages = reader.next(), outages <= 1 << 40, let continues = reader.next(), continues <= 1,
            let roundTrips = RoundTripHistogram(&reader),
            let responseTimes = format == .roundTrips ? RoundTripHistogram() : RoundTripHistogram(&reader)
        else { return nil }
        self.responseTimes = responseTimes
        (self.probes, self.lost, self.roundTrips) = (Int(probes), Int(lost), roundTrips)
        (self.outages, continuesOutage) = (Int(outages), continues == 1)
    }
}
