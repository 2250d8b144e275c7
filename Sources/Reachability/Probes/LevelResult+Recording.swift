internal import Certificates

/// The result in a recording. The facts of the kinds are beside the keys that all have in common.
extension LevelResult: Codable {
    private enum CodingKeys: String, CodingKey {
        case tls, handshakeEnd, tunnelNanoseconds, furtherConnectNanoseconds, answerNanoseconds, isAtDeadline,
            handshakeNanoseconds,
            processingNanoseconds, transferNanoseconds, isAcknowledged, hasGap, progress, hasSmallSegments, bytesSent,
            bytesReceived, localFailure
    }

    package init(from decoder: any Decoder) throws {
        self.init()
        let values = try decoder.container(keyedBy: CodingKeys.self)
        tls = try values.decodeIfPresent(TLSHandshakeFacts.self, forKey: .tls)
        handshakeEnd = try values.decodeIfPresent(TLSHandshakeEnd.self, forKey: .handshakeEnd)
        tunnelNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .tunnelNanoseconds)
        furtherConnectNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .furtherConnectNanoseconds)
        answerNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .answerNanoseconds)
        isAtDeadline = try values.decode(Bool.self, forKey: .isAtDeadline)
        handshakeNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .handshakeNanoseconds)
        processingNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .processingNanoseconds)
        transferNanoseconds = try values.decodeIfPresent(Int64.self, forKey: .transferNanoseconds)
        isAcknowledged = try values.decode(Bool.self, forKey: .isAcknowledged)
        hasGap = try values.decode(Bool.self, forKey: .hasGap)
        progress = try values.decodeIfPresent(ConnectionProgress.self, forKey: .progress)
        hasSmallSegments = try values.decode(Bool.self, forKey: .hasSmallSegments)
        bytesSent = try values.decode(Int.self, forKey: .bytesSent)
        bytesReceived = try values.decode(Int.self, forKey: .bytesReceived)
        localFailure = try values.decodeIfPresent(String.self, forKey: .localFailure)
        facts = try FactsOfKinds(from: decoder, ProbeKinds.all.flatMap(\.facts))
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encodeIfPresent(tls, forKey: .tls)
        try values.encodeIfPresent(handshakeEnd, forKey: .handshakeEnd)
        try values.encodeIfPresent(tunnelNanoseconds, forKey: .tunnelNanoseconds)
        try values.encodeIfPresent(furtherConnectNanoseconds, forKey: .furtherConnectNanoseconds)
        try values.encodeIfPresent(answerNanoseconds, forKey: .answerNanoseconds)
        try values.encode(isAtDeadline, forKey: .isAtDeadline)
        try values.encodeIfPresent(handshakeNanoseconds, forKey: .handshakeNanoseconds)
        try values.encodeIfPresent(processingNanoseconds, forKey: .processingNanoseconds)
        try values.encodeIfPresent(transferNanoseconds, forKey: .transferNanoseconds)
        try values.encode(isAcknowledged, forKey: .isAcknowledged)
        try values.encode(hasGap, forKey: .hasGap)
        try values.encodeIfPresent(progress, forKey: .progress)
        try values.encode(hasSmallSegments, forKey: .hasSmallSegments)
        try values.encode(bytesSent, forKey: .bytesSent)
        try values.encode(bytesReceived, forKey: .bytesReceived)
        try values.encodeIfPresent(localFailure, forKey: .localFailure)
        try facts.encode(to: encoder)
    }
}

extension LevelResult {
    /// Checks the numbers of a recording.
    func checkRanges() throws(RecordedNumberError) {
        try RecordedRanges.check("tunnelNanoseconds", tunnelNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("furtherConnectNanoseconds", furtherConnectNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("answerNanoseconds", answerNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("handshakeNanoseconds", handshakeNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("processingNanoseconds", processingNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("transferNanoseconds", transferNanoseconds, RecordedRanges.nanoseconds)
        try RecordedRanges.check("bytesSent", bytesSent, RecordedRanges.count)
        try RecordedRanges.check("bytesReceived", bytesReceived, RecordedRanges.count)
        if case .systemError(let errno) = handshakeEnd { try RecordedRanges.check("systemError", errno, RecordedRanges.errno) }
        if let tls {
            try RecordedRanges.check("bytesReceived", tls.bytesReceived, RecordedRanges.count)
            try RecordedRanges.check("chainLength", tls.chainLength, RecordedRanges.count)
            try RecordedRanges.check("chainNotAfter", tls.chainNotAfter, RecordedRanges.certificateSeconds)
            try RecordedRanges.check("nameCount", tls.certificate?.nameCount, RecordedRanges.count)
            try RecordedRanges.check("notBefore", tls.certificate?.notBefore, RecordedRanges.certificateSeconds)
            try RecordedRanges.check("notAfter", tls.certificate?.notAfter, RecordedRanges.certificateSeconds)
        }
        try facts.checkRanges()
    }
}
