internal import EventLoop
public import FoundationEssentials
public import Logging
internal import Synchronization

/// A store of the cookies of one or several sessions, like `HTTPCookieStorage` of URLSession.
///
/// Each session has a store (``HTTPSessionManager/cookieStore``). A program that wants several sessions to share their cookies makes a store and
/// names it in their configurations:
///
/// ```swift
/// let cookies = CookieStore()
/// var configuration = SessionConfiguration.default
/// configuration.cookies = .shared(cookies)
/// let (one, other) = try (HTTPSessionManager(configuration: configuration), HTTPSessionManager(configuration: configuration))
/// ```
///
/// A cookie is in the store before the response that set it is delivered, and the next request of each session sends it. Connections, TLS
/// sessions and Strict-Transport-Security are not shared.
///
/// The store decides by RFC 6265 which cookies it takes from a response and which a request sends: ``cookies(for:)`` shows what is sent. If a request has
/// a `Cookie` field of its own, both are one field, and the cookies of the field are the first. A request sends at most 150 stored cookies of
/// together 8,190 bytes. A response may set 50 cookies, each with up to 4,096 bytes of name and value.
///
/// A store has at most 3,000 cookies. If there are more, expired cookies are evicted first, then the oldest cookies of the domains that have the
/// most. A response over http cannot change, remove or hide a cookie that is for https alone. This also applies to cookies of other sessions (RFC
/// 6265bis section 5.7).
public final class CookieStore: Sendable, Hashable {
    private let list: Locked<CookieList>
    private let writer: CookieWriter?
    /// Whether the list has a cookie. It is read before every request, without the lock.
    private let hasCookies = Atomic(false)

    /// Creates an empty store in memory.
    public init() {
        list = Locked(CookieList())
        writer = nil
        _ = PublicSuffixList.isKnown
    }

    /// Creates a store in a file of Netscape's format, which only its owner can read.
    ///
    /// The file is read now. It is written within a second of a change, when a session that uses the store ends, and when the store is
    /// deallocated. Use one store for each file: changes by others are overwritten.
    ///
    /// - Parameters:
    ///   - file: The file, which need not exist yet.
    ///   - logger: The logger for a file that cannot be written. It receives no cookies.
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the file exists and cannot be read, or ``HTTPSessionError/Code/transferFailed``
    ///   if the system starts no thread.
    public init(file: URL, logger: Logger = Logger(label: "HTTPSession")) throws(HTTPSessionError) {
        guard file.isFileURL else {
            throw HTTPSessionError(
                .invalidConfiguration, "the URL of the cookie file is not a file URL: \(excerpt(of: file.absoluteString))")
        }
        let lines = try CookieFile.read(file)
        let cookies = CookieList(lines, now: CookieStore.now)
        list = Locked(cookies)
        hasCookies.store(!cookies.isEmpty, ordering: .relaxed)
        writer = try CookieWriter(file, written: lines, list, logger: logger)
        _ = PublicSuffixList.isKnown
    }

    /// All cookies that have not expired.
    public var cookies: [Cookie] {
        let lines = list.withLock { $0.lines(at: CookieStore.now) }
        return lines.compactMap { $0.maySend ? Cookie(line: $0.text) : nil }
    }

    /// The cookies that a request for the URL sends, those with longer paths first (RFC 6265 section 5.4).
    public func cookies(for url: URL) -> [Cookie] {
        guard let scope = CookieScope(url) else { return [] }
        let lines = list.withLock { $0.lines(for: scope, isSecure: scope.isSecure, at: CookieStore.now) }
        return lines.compactMap { Cookie(line: $0.text) }
    }

    /// Stores a cookie and replaces one with the same name, domain and path. An expired cookie removes the other one. A cookie for an address is for
    /// that address alone.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` for a cookie that no server could set: with control characters, or with a name
    ///   whose prefix (`__Secure-`, `__Host-`) demands other attributes.
    public func setCookie(_ cookie: Cookie) throws(HTTPSessionError) {
        let line = CookieLine(try cookie.line)
        let isValid = !cookie.hasExpired(at: Date())
        let key = line.key
        change { list in
            CookieChanges(
                removed: list.lines(sameAs: cookie).filter { $0.key != key } + (isValid ? [] : [line]),
                set: isValid ? [line] : [])
        }
    }

    /// Removes the cookie with the same name, domain and path, if there is one.
    public func deleteCookie(_ cookie: Cookie) {
        change { list in CookieChanges(removed: list.lines(sameAs: cookie)) }
    }

    /// Removes all cookies.
    public func deleteAllCookies() { change { CookieChanges(removed: $0.lines) } }

    /// Writes the file now, if the store has one and cookies have changed.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotWriteFile`` or another error of the file system.
    public func save() async throws(HTTPSessionError) {
        guard let writer else { return }
        let failure: HTTPSessionError? = await withCheckedContinuation { continuation in
            writer.write { failure in HomeThread.run { continuation.resume(returning: failure) } }
        }
        if let failure { throw failure }
    }

    /// Whether both are the same store.
    public static func == (one: CookieStore, other: CookieStore) -> Bool { one === other }
    /// Hashes the identity of the store.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: For sessions

    /// All cookies, also those that have expired and those of a file that are never sent.
    var lines: [CookieLine] { list.withLock { $0.lines } }

    /// Whether no request sends a cookie.
    var isEmpty: Bool { !hasCookies.load(ordering: .acquiring) }

    /// Makes the field `Cookie` of a request. A value that is not UTF-8 returns to its server unchanged.
    ///
    /// - Parameters:
    ///   - scope: The URL of the request.
    ///   - isSecure: Whether the request may send secure cookies.
    ///   - seconds: The current time in seconds since 1970.
    /// - Returns: The field's value in bytes; empty for no field.
    func field(for scope: CookieScope, isSecure: Bool, now seconds: Int64) -> [UInt8] {
        let lines = list.withLock { $0.lines(for: scope, isSecure: isSecure, at: seconds) }
        return [UInt8](lines.map(\.pair).joined(separator: "; ".utf8))
    }

    /// Stores the cookies of a response (RFC 6265 section 5.3).
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - scope: The URL of its request.
    ///   - isSecure: Whether the response may set and change secure cookies.
    ///   - seconds: The current time in seconds since 1970.
    func receive(_ head: ResponseHead, from scope: CookieScope, isSecure: Bool, now seconds: Int64) {
        var lines: [CookieLine] = []
        var count = 0
        head.forEachValue(of: "set-cookie") { value in
            let cookie = SetCookie(value, now: seconds)
            if let line = cookie?.line(for: scope, maySetSecure: isSecure, isPublicSuffix: PublicSuffixList.contains) {
                lines.append(line)
            }
            count += 1
            return count < SetCookie.maximumPerResponse
        }
        // One after another, because a response may set a cookie and remove it again.
        for line in lines {
            change(now: seconds) { list in
                let hasExpired = line.hasExpired(at: seconds)
                let changes = CookieChanges(removed: hasExpired ? [line] : [], set: hasExpired ? [] : [line])
                return isSecure ? changes : list.allowedInClear(changes, now: seconds)
            }
        }
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Writes the file before a session ends, and waits for it.
    func settle() { writer?.writeAndWait() }

    private func change(now seconds: Int64 = CookieStore.now, _ make: (CookieList) -> CookieChanges) {
        let hasChanged = list.withLock { list in
            let made = make(list)
            let hasChanged = list.apply(made, now: seconds)
            if hasChanged { hasCookies.store(!list.isEmpty, ordering: .releasing) }
            return hasChanged
        }
        if hasChanged { writer?.noteChange() }
    }
}
