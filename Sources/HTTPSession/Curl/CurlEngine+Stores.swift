internal import CCurl

/// The policies of Strict-Transport-Security (HSTS), shared by the transfers of one session only. The session's own store has the cookies.
extension CurlEngine {
    func openStore() throws(HTTPSessionError) {
        if network.enforcesHSTS {
            // One thread uses the share, so it needs no lock functions. Every transfer of a share with HSTS obeys HSTS.
            try CurlFailure.check(
                netwatch_curl_share_set_long(
                    share, Int32(bitPattern: CURLSHOPT_SHARE.rawValue), Int(CURL_LOCK_DATA_HSTS.rawValue)))
        }
        try attachStore(to: storeHandle)
        guard let path = network.hstsPath, network.enforcesHSTS else { return }
        try storeHandle.set(CURLOPT_HSTS, path)
        // libcurl reads the file when a transfer begins, but this handle makes no transfers. A transfer that fails before any network access is
        // enough.
        try storeHandle.set(CURLOPT_URL, "none://none/")
        let code = curl_easy_perform(storeHandle.raw)
        if code != CURLE_UNSUPPORTED_PROTOCOL { try CurlFailure.check(code) }
    }

    func attachStore(to handle: EasyHandle) throws(HTTPSessionError) {
        try handle.set(CURLOPT_SHARE, pointer: share)
        if network.enforcesHSTS { try handle.set(CURLOPT_HSTS_CTRL, netwatch_CURLHSTS_ENABLE) }
    }

    /// Sets the host overrides on a handle that has not loaded them since the last change of the network.
    ///
    /// libcurl writes them into the multi handle's cache of names when the next transfer of the handle begins, once for each setting. libcurl 8.16 and
    /// newer remove them from there with all other names (CURLMOPT_NETWORK_CHANGED), so a kept handle sets them again.
    func applyOverrides(to handle: EasyHandle) throws(HTTPSessionError) {
        guard let lines = overrides.raw, handle.overridesVersion != overridesVersion else { return }
        try handle.set(CURLOPT_RESOLVE, pointer: lines)
        handle.overridesVersion = overridesVersion
    }
}
