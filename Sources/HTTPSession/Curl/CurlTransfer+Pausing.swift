internal import CCurl

/// How an attempt pauses and continues; called by the engine, outside of libcurl.
extension CurlTransfer {
    /// Pauses both directions of a suspended task, or lets them continue as far as their buffers allow.
    func hold(_ isHeld: Bool) { change { $0.setSuspended(isHeld) } }

    /// The receiver has room again.
    func resumeReceiving() { change { $0.receiverReady() } }

    /// The receiver has something to send again.
    func resumeSending() { change { $0.sourceReady() } }

    func change(_ body: (inout PauseMachine) -> Void) {
        body(&pauses)
        guard !pauses.isApplied, !isListedToSettle else { return }
        isListedToSettle = true
        engine.settleLater(self)
    }

    /// Sets libcurl's pause bits. curl_easy_pause(3) delivers the bytes that libcurl has kept, and reports only to its caller if they are refused.
    /// The transfer would continue without these bytes.
    ///
    /// - Returns: Whether the transfer may continue.
    func settlePauses() -> Bool {
        isListedToSettle = false
        guard let directions = pauses.applyChange() else { return refusal == nil }
        var mask = CURLPAUSE_CONT
        if directions.contains(.receiving) {
            mask |= CURLPAUSE_RECV
            // During the pause libcurl reads lines and does not deliver them.
            handle.watchFirstField()
        }
        if directions.contains(.sending) { mask |= CURLPAUSE_SEND }
        let code = curl_easy_pause(handle.raw, mask)
        guard code != CURLE_BAD_FUNCTION_ARGUMENT else {
            // Without a connection there is nothing to pause. A suspended request is not sent later either (mayRequest).
            pauses.connectionRemoved()
            return refusal == nil
        }
        do throws(HTTPSessionError) { try CurlFailure.check(code, evidence()) } catch { refuse(with: error) }
        return refusal == nil
    }
}
