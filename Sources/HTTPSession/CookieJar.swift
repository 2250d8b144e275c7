public import FoundationEssentials
internal import EventLoop

/// The cookies of a session, what `HTTPCookieStorage` is to a URLSession. Requests under way may change them at any time; those of a
/// ``CookieStore`` other sessions too.
///
/// Every method throws ``HTTPSessionError/Code/sessionInvalidated`` when the session has ended.
public struct CookieJar: Sendable {
    let core: SessionCore

    /// All of them, but what has expired.
    public func all() async throws(HTTPSessionError) -> [Cookie] {
        let now = Date()
        return try await ask(.read).compactMap { Cookie(line: $0.text) }.filter { !$0.hasExpired(at: now) }
    }

    /// Those that a request to the address gets, longer paths first (RFC 6265 section 5.4).
    public func cookies(for url: URL) async throws(HTTPSessionError) -> [Cookie] {
        try await all().filter { $0.matches(url) }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Keeps a cookie, in the place of one of the same name, domain and path. One that has expired removes that one.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` for one that no server could set (control characters, `__Host-` in the name and a
    /// domain's hosts below, and the like), ``HTTPSessionError/Code/invalidConfiguration`` where the session keeps none.
    public func set(_ cookie: Cookie) async throws(HTTPSessionError) { _ = try await ask(.set(cookie)) }

    /// Removes the cookie of that name, domain and path, if there is one.
    public func delete(_ cookie: Cookie) async throws(HTTPSessionError) { _ = try await ask(.delete(cookie)) }

    /// Removes all cookies.
    public func deleteAll() async throws(HTTPSessionError) { _ = try await ask(.deleteAll) }

    private func ask(_ wish: CookieWish) async throws(HTTPSessionError) -> [CookieLine] {
        let answer: Result<[CookieLine], HTTPSessionError> = await withCheckedContinuation { continuation in
            if !core.post(.cookies(wish) { answer in HomeThread.run { continuation.resume(returning: answer) } }) {
                continuation.resume(
                    returning: .failure(HTTPSessionError(.sessionInvalidated, "the session has been invalidated")))
            }
        }
        return try answer.get()
    }
}

extension HTTPSessionManager {
    /// What servers have set, and what the program sets itself.
    public var cookies: CookieJar { CookieJar(core: core) }
}
