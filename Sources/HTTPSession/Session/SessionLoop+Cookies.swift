internal import FoundationEssentials

/// What is asked of a session's cookies. The answer is those that there are then, a line each.
enum CookieWish: Sendable {
    case read
    case set(Cookie)
    case delete(Cookie)
    case deleteAll
}

extension SessionLoop {
    func fulfil(_ wish: CookieWish) -> Result<[CookieLine], HTTPSessionError> {
        if let cookieShare { return fulfil(wish, in: cookieShare) }
        do throws(HTTPSessionError) {
            switch wish {
            case .read: return .success(engine.cookieLines)
            case .set(let cookie): try set(cookie)
            case .delete(let cookie): try delete(cookie)
            case .deleteAll: try engine.setCookie(CookieLine("ALL"))
            }
        } catch {
            return .failure(error)
        }
        noteCookies(1)
        return .success(engine.cookieLines)
    }

    private func set(_ cookie: Cookie) throws(HTTPSessionError) {
        guard settings.network.cookies != .none else {
            throw HTTPSessionError(.invalidConfiguration, "the session keeps no cookies: see SessionConfiguration.cookies")
        }
        let line = CookieLine(try cookie.line)
        let before = engine.cookieLines
        // libcurl would keep one for the host and one for its domain side by side.
        try delete(cookie)
        guard !cookie.hasExpired(at: Date()) else { return }
        try engine.setCookie(line)
        guard takes(cookie) else {
            try replaceAll(before)
            throw SessionLoop.notTaken(cookie)
        }
    }

    /// libcurl says nothing of a cookie that it does not take.
    private func takes(_ cookie: Cookie) -> Bool {
        engine.cookieLines.contains { Cookie(line: $0.text)?.isSame(as: cookie) == true }
    }

    private static func notTaken(_ cookie: Cookie) -> HTTPSessionError {
        HTTPSessionError(.invalidRequest, "the cookie '\(cookie.name)' is not as its name or its domain demands")
    }

    /// libcurl can only clear the whole jar.
    private func delete(_ cookie: Cookie) throws(HTTPSessionError) {
        let lines = engine.cookieLines
        let left = lines.filter { Cookie(line: $0.text)?.isSame(as: cookie) != true }
        guard left.count < lines.count else { return }
        try replaceAll(left)
    }

    private func replaceAll(_ lines: [CookieLine]) throws(HTTPSessionError) {
        try engine.setCookie(CookieLine("ALL"))
        for line in lines { try engine.setCookie(line) }
    }

    /// A response may have brought cookies. `isSecure`: over https, or from this machine, which is as good to libcurl.
    func noteCookies(in head: ResponseHead, isSecure: Bool) {
        guard settings.network.cookies != .none, head.has("set-cookie") else { return }
        guard cookieShare == nil else { return exchangeCookies(isSecure: isSecure) }
        noteCookies(head.values(of: "set-cookie").count)
    }

    /// libcurl has no limit. So many may have come that they have to be counted: some may have taken others' places.
    private func noteCookies(_ count: Int) {
        cookiesCome += count
        guard cookiesCome > CookieBound.most else { return }
        let lines = engine.cookieLines
        let kept = CookieBound.kept(lines)
        if kept.count < lines.count { try? replaceAll(kept) }
        // Not again for each that follows.
        cookiesCome = min(kept.count, CookieBound.most * 9 / 10)
    }
}

/// Cookies of a store, which other sessions may have too.
extension SessionLoop {
    private func fulfil(_ wish: CookieWish, in share: CookieShare) -> Result<[CookieLine], HTTPSessionError> {
        do throws(HTTPSessionError) {
            switch wish {
            case .read: break
            case .set(let cookie):
                let former = try share.store.replace(cookie)
                exchangeCookies(isSecure: false)
                guard cookie.hasExpired(at: Date()) || takes(cookie) else {
                    share.store.takeBack(cookie, for: former)
                    throw SessionLoop.notTaken(cookie)
                }
            case .delete(let cookie): share.store.delete(cookie)
            case .deleteAll: share.store.deleteAll()
            }
            exchangeCookies(isSecure: false)
        } catch {
            return .failure(error)
        }
        return .success(engine.cookieLines)
    }

    /// Before a request: what other sessions have been given is sent with it.
    func takeCookies() {
        if let cookieShare, cookieShare.isBehind { exchangeCookies(isSecure: false) }
    }

    /// `isSecure`: by a response over https. Of half a response nobody knows.
    private func exchangeCookies(isSecure: Bool) {
        guard let cookieShare else { return }
        let changes = cookieShare.exchange(engine.cookieLines, now: Int64(Date().timeIntervalSince1970), isSecure: isSecure)
        guard !changes.isEmpty else { return }
        // libcurl removes none but all of them, and what has expired.
        for line in changes.removed { try? engine.setCookie(line.expired) }
        for line in changes.set { try? engine.setCookie(line) }
        cookieShare.settle(engine.cookieLines)
    }
}
