internal import Certificates
internal import CCurl

/// The measurements and the evidence of an attempt under way.
extension CurlTransfer {
    /// The bytes of the response's body so far, before decompression.
    var receivedBodyBytes: Int64 { handle.offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// Whether other transfers may share the connection; `nil` before the end of the handshake.
    var usesHTTP2: Bool? {
        switch engine.network.httpVersion {
        case _ where plan.avoidsHTTP2, .http1: false
        case .http2 where plan.isSecure || isUpgraded: secureFacts.map { $0.applicationProtocol != "http/1.1" }
        case .http2: !engine.network.needsConnectionAlone(isSecure: false)
        case .automatic where plan.isSecure || isUpgraded: secureFacts.map { $0.applicationProtocol == "h2" }
        case .automatic: false
        }
    }

    /// The measurements so far.
    var facts: TransferFacts {
        var facts = handle.facts()
        if let requested, let answered, let preTransfer = facts.preTransfer {
            facts.firstByte = min(facts.total, preTransfer + answered - requested)
        }
        if let lookupStarted, let end = facts.nameLookup { facts.lookupStart = min(max(0, lookupStarted - started), end) }
        // libcurl 7.88 reports a proxy only if it opened a tunnel.
        facts.usedProxy = facts.usedProxy || plan.usesProxy
        (facts.providedBodyBytes, facts.decodedBodyBytes) = (providedBytes, decodedBytes)
        (facts.tlsVersion, facts.tlsCipher) = (secureFacts?.version, secureFacts?.cipher)
        return facts
    }

    /// Whether the complete body of the request was sent. `count`: the bytes that were sent, as libcurl counts them (`CURLINFO_SIZE_UPLOAD_T`). For
    /// a body of unknown length over HTTP/1 this includes the framing of the chunks.
    func isRequestBodySent(_ count: Int64) -> Bool {
        switch plan.body {
        case .none: true
        case .length(let length): count >= length
        case .untilEnd: hasProvidedEnd && count >= providedBytes
        }
    }

    /// The evidence that decides what an error code of libcurl means.
    func evidence() -> CurlEvidence {
        CurlEvidence(
            text: String(cString: handle.errorText), systemError: Int32(truncatingIfNeeded: handle.long(CURLINFO_OS_ERRNO)),
            hasRequested: requests > 0, refusal: refusal, trust: trust?.error, wasResent: wasResent && refusal == nil,
            isMultiplexed: usesHTTP2 == true,
            usesProxy: plan.usesProxy || handle.long(CURLINFO_HTTP_CONNECTCODE) != 0)
    }
}
