internal import Certificates
internal import Pacing

/// The error of a number in a recording that no kernel, server or clock produces.
struct RecordedNumberError: Error, Hashable {
    /// One line: the name of the number, and its range.
    let description: String
}

/// The ranges of the numbers in a recording.
///
/// A recording may come from anybody, and a monitor computes with these numbers as with those of the kernel. A number outside of its range is an
/// error of its line.
enum RecordedRanges {
    /// Durations and monotonic times in nanoseconds: 36 years, so that sums of several do not overflow.
    static let nanoseconds: Range<Int64> = 0..<1 << 60
    /// Times of certificates in seconds since 1970: the years 0 to 9999 (RFC 5280 section 4.1.2.5).
    static let certificateSeconds: Range<Int64> = -62_167_219_200..<253_402_300_800
    /// Counts of bytes, names and certificates.
    static let count = 0..<1 << 40
    /// Error numbers (errno(3)); a kernel has at most 4095 (`MAX_ERRNO`).
    static let errno: Range<Int32> = 0..<4_096

    static func check<Number: BinaryInteger>(
        _ name: @autoclosure () -> String, _ number: Number?, _ range: Range<Number>
    ) throws(RecordedNumberError) {
        guard let number, !range.contains(number) else { return }
        throw RecordedNumberError(
            description: "'\(name())' is \(number), outside of \(range.lowerBound) to \(range.upperBound - 1)")
    }
}

extension RecordedInput {
    /// Checks the numbers of the line, whose names are those of the JSON.
    func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("t", moment.monotonicNanoseconds, RecordedRanges.nanoseconds)
        // The wall clock may be set to any time.
        switch input {
        case .dumpFailed(let errno): try RecordedRanges.check("errno", errno, RecordedRanges.errno)
        case .resolver(let configuration): try RecordedRanges.check("ndots", configuration.ndots, 0..<16)
        case .lookup(let answer): try answer.checkRanges()
        case .probe(let result): try result.checkRanges()
        case .hostReply(_, let reply): try RecordedRanges.check("errno", reply.errno, RecordedRanges.errno)
        case .searchReply(_, let reply):
            try RecordedRanges.check("limit", reply.answer?.limit, 0..<256)
            try RecordedRanges.check("target", reply.answer?.target, 0..<1 << 32)
            try RecordedRanges.check("roundTripNanoseconds", reply.answer?.roundTripNanoseconds, RecordedRanges.nanoseconds)
        case .probeLimit(let limit): try RecordedRanges.check("limit", limit, 0..<Int(Int32.max))
        case .resumed(let asleep): try RecordedRanges.check("asleep", asleep, RecordedRanges.nanoseconds)
        case .targetAdded(let id, _, _), .targetRemoved(let id):
            // The upper half of an attempt's number.
            try RecordedRanges.check("target", id.number, 0..<1 << 32)
        case .targetReplaced(let id, let other):
            try RecordedRanges.check("target", id.number, 0..<1 << 32)
            try RecordedRanges.check("by", other.number, 0..<1 << 32)
        case .passiveReport(let report):
            guard case .success(_, let roundTrip) = report.outcome else { break }
            try RecordedRanges.check("rtt", roundTrip?.saturatingNanoseconds, RecordedRanges.nanoseconds)
        // Their numbers have no more than 32 bits, or every value is valid, or the decoder of the bytes checks them. Settings limit
        // themselves.
        case .began, .datagram, .overrun, .dump, .routeReply, .neighborReply, .evidence, .counters, .namespaceGone, .pollDue,
            .turnEnded:
            break
        }
    }
}

extension LookupAnswer {
    fileprivate func checkRanges() throws(RecordedNumberError) {
        // Codes of getaddrinfo(3) are negative.
        try RecordedRanges.check("code", code, -4_096..<4_096)
        try RecordedRanges.check("errno", errno, RecordedRanges.errno)
        try RecordedRanges.check("elapsedNanoseconds", elapsedNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("queuedNanoseconds", queuedNanoseconds, RecordedRanges.nanoseconds)
        for exchange in families.lazy.flatMap(\.exchanges) {
            try RecordedRanges.check("errno", exchange.errno, RecordedRanges.errno)
        }
    }
}

extension ProbeResult {
    fileprivate func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("errno", errno, RecordedRanges.errno)
        try RecordedRanges.check("roundTripNanoseconds", roundTripNanoseconds, RecordedRanges.nanoseconds)
        // `tcpi_total_retrans` has 32 bits (tcp(7)); a handshake repeats at most 127 times (`tcp_syn_retries`, ip-sysctl).
        try RecordedRanges.check("retransmissions", retransmissions, 0..<1_024)
        try levels?.checkRanges()
    }
}

extension LevelResult {
    fileprivate func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("tunnelNanoseconds", tunnelNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("furtherConnectNanoseconds", furtherConnectNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("handshakeNanoseconds", handshakeNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("processingNanoseconds", processingNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("transferNanoseconds", transferNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("bytesSent", bytesSent, RecordedRanges.count)
        try RecordedRanges.check("bytesReceived", bytesReceived, RecordedRanges.count)
        if case .systemError(let errno) = handshakeEnd { try RecordedRanges.check("systemError", errno, RecordedRanges.errno) }
        if case .systemError(let errno) = httpEnding { try RecordedRanges.check("systemError", errno, RecordedRanges.errno) }
        if let tls {
            try RecordedRanges.check("bytesReceived", tls.bytesReceived, RecordedRanges.count)
            try RecordedRanges.check("chainLength", tls.chainLength, RecordedRanges.count)
            try RecordedRanges.check("chainNotAfter", tls.chainNotAfter, RecordedRanges.certificateSeconds)
            try RecordedRanges.check("nameCount", tls.certificate?.nameCount, RecordedRanges.count)
            try RecordedRanges.check("notBefore", tls.certificate?.notBefore, RecordedRanges.certificateSeconds)
            try RecordedRanges.check("notAfter", tls.certificate?.notAfter, RecordedRanges.certificateSeconds)
        }
        if let response = http?.response {
            try RecordedRanges.check("status", response.status, 0..<1_000)
            try RecordedRanges.check("receivedBytes", response.receivedBytes, RecordedRanges.count)
            try RecordedRanges.check("bodyBytes", response.bodyBytes, RecordedRanges.count)
        }
    }
}
