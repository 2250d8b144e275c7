internal import Pacing

/// The ranges of the numbers in a line of a recording.
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
        case .targetAdded(let id, _, _), .targetRemoved(let id), .heartbeat(let id, _):
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
