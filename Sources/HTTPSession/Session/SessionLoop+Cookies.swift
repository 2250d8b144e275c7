internal import FoundationEssentials

/// The cookies of the session's store, which other sessions may use as well.
extension SessionLoop {
    /// Updates the store if the response has set cookies. `isSecure` is true for a response over https or from this machine, which libcurl treats
    /// alike.
    func storeCookies(of head: ResponseHead, isSecure: @autoclosure () -> Bool) {
        guard cookieShare != nil, head.has("set-cookie") else { return }
        exchangeCookies(isSecure: isSecure())
    }

    /// Updates libcurl's jar before a request, so that the request sends what the program or other sessions have stored.
    func loadCookies() {
        if let cookieShare, cookieShare.isBehind { exchangeCookies(isSecure: false) }
    }

    /// Exchanges changes between libcurl's jar and the store. `isSecure` is true if a response over https has changed the jar.
    private func exchangeCookies(isSecure: Bool) {
        guard let cookieShare else { return }
        let changes = cookieShare.exchange(engine.cookieLines, now: Int64(Date().timeIntervalSince1970), isSecure: isSecure)
        guard !changes.isEmpty else { return }
        // libcurl removes all cookies or expired ones, but no single cookie.
        for line in changes.removed { try? engine.setCookie(line.expired) }
        for line in changes.set { try? engine.setCookie(line) }
        cookieShare.settle(engine.cookieLines)
    }
}
