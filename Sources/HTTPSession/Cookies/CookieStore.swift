internal import EventLoop
public import FoundationEssentials
public import Logging
internal import Synchronization

/// The cookies of one session or of several, as `HTTPCookieStorage` keeps them for URLSession.
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
/// most. A response that did not come over https cannot change, remove or hide a cookie that is for https alone, whichever session received it
/// (RFC 6265bis section 5.7).
public final class CookieStore: Sendable, Hashable {
    private let ledger: Locked<CookieLedger>
    private let writer: CookieWriter?
    private let changes = Atomic<UInt64>(0)

    /// An empty store, in memory.
    public init() {
        ledger = Locked(CookieLedger())
        writer = nil
    }

    /// A store that is kept in a file of Netscape's format for its owner's eyes, read now, and written anew within a second of a change,
    /// when a session of it ends and when the store does. A file has one store; whoever else writes to it is not heard.
    ///
    /// - Parameters:
    ///   - file: where it is; it need not be there yet.
    ///   - logger: hears of a file that cannot be written. Never a cookie.
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` for a file that is there and cannot be read, or what the system refused.
    public init(file: URL, logger: Logger = Logger(label: "HTTPSession")) throws(HTTPSessionError) {
        guard file.isFileURL else {
            throw HTTPSessionError(.invalidConfiguration, "the cookies' file is no file URL: \(excerpt(of: file.absoluteString))")
        }
        let lines = try CookieFile.read(file)
        ledger = Locked(CookieLedger(lines, now: CookieStore.now))
        writer = try CookieWriter(file, written: lines, ledger, logger: logger)
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
        change { ledger in
            // To libcurl a cookie of a host and one of its domain are two cookies.
            let former = ledger.lines.filter { $0.key == line.key || Cookie(line: $0.text)?.isSame(as: cookie) == true }
            return CookieChanges(
                removed: former.filter { $0.key != line.key } + (isValid ? [] : [line]), set: isValid ? [line] : [])
        }
    }

    /// Removes the cookie with the same name, domain and path, if there is one.
    public func deleteCookie(_ cookie: Cookie) {
        change { ledger in CookieChanges(removed: ledger.lines.filter { Cookie(line: $0.text)?.isSame(as: cookie) == true }) }
    }

    /// Removes all cookies.
    public func deleteAllCookies() { change { CookieChanges(removed: $0.lines) } }

    /// Has the file written now, if there is one and it would change.
    ///
    /// - Throws: why it cannot be written.
    public func save() async throws(HTTPSessionError) {
        guard let writer else { return }
        let failure: HTTPSessionError? = await withCheckedContinuation { continuation in
            writer.write { failure in HomeThread.run { continuation.resume(returning: failure) } }
        }
        if let failure { throw failure }
    }

    /// Stores are equal where they are the same one.
    public static func == (one: CookieStore, other: CookieStore) -> Bool { one === other }
    /// By identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: For sessions

    /// Another number after every change.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    var present: (lines: [CookieLine], version: UInt64) { ledger.withLock { ($0.lines, $0.version) } }

    /// `seconds` since 1970. `isSecure`: https has made them; else what is left of them is what nothing of https suffers from.
    ///
    /// - Returns: what there is then.
    func apply(_ changes: CookieChanges, now seconds: Int64, isSecure: Bool) -> (lines: [CookieLine], version: UInt64) {
        change(now: seconds) { isSecure ? changes : $0.allowedInClear(changes, now: seconds) }
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// A session ends: what it has been given is in the file.
    func settle() { writer?.writeAndWait() }

    @discardableResult
    private func change(
        now seconds: Int64 = CookieStore.now, _ make: (CookieLedger) -> CookieChanges
    ) -> (lines: [CookieLine], version: UInt64) {
        let (present, hasChanged) = ledger.withLock { ledger in
            let hasChanged = ledger.apply(make(ledger), now: seconds)
            if hasChanged { changes.store(ledger.version, ordering: .releasing) }
            return ((ledger.lines, ledger.version), hasChanged)
        }
        if hasChanged { writer?.noteChange() }
        return present
    }
}
