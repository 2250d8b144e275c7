internal import CCurl
internal import Glibc

/// Cookies and HSTS, shared by the transfers of one session only.
extension CurlEngine {
    func openStores(_ cookieLines: [CookieLine]) throws(HTTPSessionError) {
        // One thread uses the share, so it needs no lock functions. Every transfer of a share with HSTS obeys HSTS.
        let policies = network.enforcesHSTS ? [CURL_LOCK_DATA_HSTS] : []
        let data = [(share, [CURL_LOCK_DATA_COOKIE] + policies), (cookielessShare, policies)]
        for (share, kinds) in data {
            for kind in kinds {
                try CurlFailure.check(
                    netwatch_curl_share_set_long(share, Int32(bitPattern: CURLSHOPT_SHARE.rawValue), Int(kind.rawValue)))
            }
        }
        try attachStores(to: storeHandle, handlesCookies: true)
        for line in cookieLines { try setCookie(line) }
        guard let path = network.hstsPath, network.enforcesHSTS else { return }
        try storeHandle.set(CURLOPT_HSTS, path)
        // libcurl reads the file when a transfer begins, but this handle makes no transfers. A transfer that fails before any network access is
        // enough.
        try storeHandle.set(CURLOPT_URL, "none://none/")
        let code = curl_easy_perform(storeHandle.raw)
        if code != CURLE_UNSUPPORTED_PROTOCOL { try CurlFailure.check(code) }
    }

    func attachStores(to handle: EasyHandle, handlesCookies: Bool) throws(HTTPSessionError) {
        let keepsCookies = handlesCookies && network.cookieStore != nil
        try handle.set(CURLOPT_SHARE, pointer: keepsCookies ? share : cookielessShare)
        // Since 7.88 a shared jar is not enough: each handle has to enable cookies, by the name of a file that need not exist.
        if keepsCookies { try handle.set(CURLOPT_COOKIEFILE, "") }
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

    /// The cookies of the session, one line each in Netscape's format.
    var cookieLines: [CookieLine] {
        var pointer: UnsafeMutableRawPointer?
        guard netwatch_curl_get_pointer(storeHandle.raw, Int32(bitPattern: CURLINFO_COOKIELIST.rawValue), &pointer) == CURLE_OK,
            let pointer
        else { return [] }
        let first = pointer.assumingMemoryBound(to: curl_slist.self)
        defer { curl_slist_free_all(first) }
        var lines: [CookieLine] = []
        var next: UnsafeMutablePointer<curl_slist>? = first
        while let item = next {
            if let data = item.pointee.data {
                lines.append(CookieLine([UInt8](UnsafeRawBufferPointer(start: data, count: strlen(data)))))
            }
            next = item.pointee.next
        }
        return lines
    }

    /// Sets a cookie, or with `ALL` removes all cookies and with `SESS` the session cookies (CURLOPT_COOKIELIST).
    ///
    /// A cookie that must not be sent is ignored, because libcurl checks only the cookies of servers and takes every other line unchanged.
    func setCookie(_ line: CookieLine) throws(HTTPSessionError) {
        guard line.maySend else { return }
        let text = UnsafeMutableRawBufferPointer.allocate(byteCount: line.bytes.count + 1, alignment: 1)
        defer { text.deallocate() }
        text.copyBytes(from: line.bytes)
        text[line.bytes.count] = 0
        try storeHandle.set(CURLOPT_COOKIELIST, pointer: text.baseAddress)
    }
}
