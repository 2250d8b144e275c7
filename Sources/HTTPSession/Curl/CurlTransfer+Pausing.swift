internal import CCurl

/// How an attempt stands still and goes on; called by the engine, outside of libcurl.
extension CurlTransfer {
    /// Holds both directions, or lets them go on.
    ///
    /// - Returns: whether the transfer may go on. curl_easy_pause(3) hands over what libcurl has kept meanwhile, and where that is refused
    ///   it tells only its caller: the transfer would go on without the bytes.
    func hold(_ isHeld: Bool) -> Bool {
        guard self.isHeld != isHeld else { return true }
        self.isHeld = isHeld
        hasWaited = true
        let mask = isHeld ? CURLPAUSE_ALL : CURLPAUSE_CONT
        if !isHeld { (isReceivingPaused, isSendingPaused) = (false, false) }
        curl_easy_pause(handle.raw, mask)
        return refusal == nil
    }

    /// The receiver has room again. - Returns: as ``hold(_:)``.
    func resumeReceiving() -> Bool {
        guard isReceivingPaused, !isHeld else { return true }
        isReceivingPaused = false
        curl_easy_pause(handle.raw, isSendingPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
        return refusal == nil
    }

    /// The receiver has something to send again. - Returns: as ``hold(_:)``.
    func resumeSending() -> Bool {
        guard isSendingPaused, !isHeld else { return true }
        isSendingPaused = false
        curl_easy_pause(handle.raw, isReceivingPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
        return refusal == nil
    }
}
