/// The link between libcurl's cookie jar of one session and a store that other sessions share. It is used on the session's thread only.
///
/// Changes that a response has made to the jar are applied to the store before the response is delivered. Changes of other sessions are applied
/// to the jar before its next request. If two sessions receive the same cookie, the later exchange with the store wins.
final class CookieShare {
    let store: CookieStore
    private var version: UInt64
    /// The cookies of the jar at the last comparison.
    private(set) var known: [CookieLine]

    init(_ store: CookieStore) {
        self.store = store
        (known, version) = store.present
    }

    /// Whether other sessions have changed the store. It compares two numbers, because it is checked before every request.
    var isBehind: Bool { store.version != version }

    /// Applies the jar's changes to the store.
    ///
    /// `isSecure` is whether the changes come from https. libcurl protects the secure cookies in its jar from other responses, but the jar may lack
    /// those of other sessions.
    ///
    /// - Returns: the changes that bring the jar to the state of the store.
    func exchange(_ jar: [CookieLine], now seconds: Int64, isSecure: Bool) -> CookieChanges {
        var own = CookieChanges(from: known, to: jar)
        // A cookie that expired here has expired in the store as well, unless another session has received it again.
        own.removed.removeAll { $0.hasExpired(at: seconds) }
        let present: [CookieLine]
        (present, version) = store.apply(own, now: seconds, isSecure: isSecure)
        known = jar
        return CookieChanges(from: jar, to: present)
    }

    /// Records the jar's cookies after the changes of the last exchange. libcurl may have refused some of them.
    func settle(_ jar: [CookieLine]) { known = jar }
}
