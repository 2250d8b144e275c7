internal import CCurl

/// How an attempt pauses and continues; called by the engine, outside of libcurl.
extension CurlTransfer {
    /// The task is suspended, or resumed: both directions stand still, or continue as far as their buffers allow.
    func hold(_ isHeld: Bool) { change { $0.setSuspended(isHeld) } }

    /// The receiver has room again.
    func resumeReceiving() { change { $0.receiverReady() } }

    /// The receiver has something to send again.
    func resumeSending() { change { $0.sourceReady() } }

    func change(_ body: (inout PauseMachine) -> Void) {
        body(&pauses)
        guard !pauses.isApplied, !isListedToSettle else { return }
        isListedToSettle = true
        engine.settlesLater(self)
    }

    /// Sets libcurl's bits as they are wanted now. curl_easy_pause(3) hands over what libcurl has kept meanwhile, and tells only its caller if
    /// that is refused: the transfer would continue without the bytes.
    ///
    /// - Returns: whether the transfer may continue.
    func settlePauses() -> Bool {
        isListedToSettle = false
        guard let directions = pauses.applyChange() else { return refusal == nil }
        var mask = CURLPAUSE_CONT
        if directions.contains(.receiving) { mask |= CURLPAUSE_RECV }
        if directions.contains(.sending) { mask |= CURLPAUSE_SEND }
        let code = curl_easy_pause(handle.raw, mask)
        guard code != CURLE_BAD_FUNCTION_ARGUMENT else {
            // Before there is a connection, and when it is over, nothing flows that would have to stop; a request is not sent while held.
            pauses.connectionRemoved()
            return refusal == nil
        }
        do throws(HTTPSessionError) { try CurlFailure.check(code, evidence()) } catch { refuse(with: error) }
        return refusal == nil
    }
}
