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
/// A store has at most 3,000 cookies. If there are more, expired cookies are evicted first, then the oldest cookies of the domains that have the
/// most. A response over http cannot change, remove or hide a cookie that is for https alone. This also applies to cookies of other sessions (RFC
/// 6265bis section 5.7).
public final class CookieStore: Sendable, Hashable {
    private let list: Locked<CookieList>
    private let writer: CookieWriter?
    private let changes = Atomic<UInt64>(0)

    /// Creates an empty store in memory.
    public init() {
        list = Locked(CookieList())
        writer = nil
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
        list = Locked(CookieList(lines, now: CookieStore.now))
        writer = try CookieWriter(file, written: lines, list, logger: logger)
    }

    /// All cookies that have not expired.
    public var cookies: [Cookie] {
        let now = Date()
        return present.lines.compactMap { Cookie(line: $0.text) }.filter { !$0.hasExpired(at: now) }
    }

    /// The cookies that a request for the URL sends, those with longer paths first (RFC 6265 section 5.4).
    public func cookies(for url: URL) -> [Cookie] {
        cookies.filter { $0.matches(url) }.sorted { $0.path.utf8.count > $1.path.utf8.count }
    }

    /// Stores a cookie and replaces one with the same name, domain and path. An expired cookie removes the other one.
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

    /// The number of changes.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// The cookies of the store and the number of its changes.
    var present: (lines: [CookieLine], version: UInt64) { list.withLock { ($0.lines, $0.version) } }

    /// Applies the changes that a response has made.
    ///
    /// - Parameters:
    ///   - changes: The changes. Without TLS, only those that affect no secure cookie are applied.
    ///   - seconds: The current time in seconds since 1970.
    ///   - isSecure: Whether the response came over https.
    /// - Returns: the cookies of the store afterwards.
    func apply(_ changes: CookieChanges, now seconds: Int64, isSecure: Bool) -> (lines: [CookieLine], version: UInt64) {
        change(now: seconds) { isSecure ? changes : $0.allowedInClear(changes, now: seconds) }
        return present
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Writes the file before a session ends, and waits for it.
    func settle() { writer?.writeAndWait() }

    private func change(now seconds: Int64 = CookieStore.now, _ make: (CookieList) -> CookieChanges) {
        let hasChanged = list.withLock { list in
            let made = make(list)
            let hasChanged = list.apply(made, now: seconds)
            if hasChanged { changes.store(list.version, ordering: .releasing) }
            return hasChanged
        }
        if hasChanged { writer?.noteChange() }
    }
}
