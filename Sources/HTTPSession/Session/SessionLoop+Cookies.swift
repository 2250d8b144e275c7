internal import Foundation

/// What is asked of a session's cookies. The answer is those that there are then, a line each.
enum CookieWish: Sendable {
    case read
    case set(Cookie)
    case delete(Cookie)
    case deleteAll
}

extension SessionLoop {
    func fulfil(_ wish: CookieWish) -> Result<[String], HTTPSessionError> {
        do throws(HTTPSessionError) {
            switch wish {
            case .read: return .success(engine.cookieLines)
            case .set(let cookie): try set(cookie)
            case .delete(let cookie): try delete(cookie)
            case .deleteAll: try engine.setCookie("ALL")
            }
        } catch {
            return .failure(error)
        }
        cookieKeeper?.noteChange(now: now)
        return .success(engine.cookieLines)
    }

    private func set(_ cookie: Cookie) throws(HTTPSessionError) {
        guard settings.network.cookies != .none else {
            throw HTTPSessionError(.invalidConfiguration, "the session keeps no cookies: see SessionConfiguration.cookies")
        }
        let line = try cookie.line
        let before = engine.cookieLines
        // libcurl would keep one for the host and one for its domain side by side.
        try delete(cookie)
        guard !cookie.hasExpired(at: Date()) else { return }
        try engine.setCookie(line)
        // It says nothing of a cookie that it does not take.
        guard engine.cookieLines.contains(where: { Cookie(line: $0)?.isSame(as: cookie) == true }) else {
            try replaceAll(before)
            throw HTTPSessionError(.invalidRequest, "the cookie '\(cookie.name)' is not as its name or its domain demands")
        }
    }

    /// libcurl can only clear the whole jar.
    private func delete(_ cookie: Cookie) throws(HTTPSessionError) {
        let lines = engine.cookieLines
        let left = lines.filter { Cookie(line: $0)?.isSame(as: cookie) != true }
        guard left.count < lines.count else { return }
        try replaceAll(left)
    }

    private func replaceAll(_ lines: [String]) throws(HTTPSessionError) {
        try engine.setCookie("ALL")
        for line in lines { try engine.setCookie(line) }
    }

    /// A response may have brought cookies.
    func noteCookies(in head: ResponseHead) {
        guard let cookieKeeper, head.firstValue(of: "set-cookie") != nil else { return }
        cookieKeeper.noteChange(now: now)
    }
}
