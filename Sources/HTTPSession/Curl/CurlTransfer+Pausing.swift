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
        return pause(mask)
    }

    /// The receiver has room again. - Returns: as ``hold(_:)``.
    func resumeReceiving() -> Bool {
        guard isReceivingPaused, !isHeld else { return true }
        isReceivingPaused = false
        return pause(isSendingPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
    }

    /// The receiver has something to send again. - Returns: as ``hold(_:)``.
    func resumeSending() -> Bool {
        guard isSendingPaused, !isHeld else { return true }
        isSendingPaused = false
        return pause(isReceivingPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT)
    }

    /// What cannot be paused, or not let go on, has failed. - Returns: as ``hold(_:)``.
    @discardableResult
    func pause(_ mask: Int32) -> Bool {
        let code = curl_easy_pause(handle.raw, mask)
        // Before there is a connection, and when it is over, nothing flows that would have to stop.
        if code != CURLE_BAD_FUNCTION_ARGUMENT {
            do throws(HTTPSessionError) { try CurlFailure.check(code, evidence()) } catch { refuse(with: error) }
        }
        return refusal == nil
    }
}
