/// A session's part in a store of cookies that others have too. It belongs to the session's thread.
///
/// Each session has a jar of libcurl's own, which belongs to its thread. What a response has changed in it goes to the store before anybody
/// hears of the response; what others have changed there comes to it before its next request. The store's order is that of all: of two
/// sessions that are given the same cookie, the one that tells later is right.
final class CookieShare {
    let store: CookieStore
    private var version: UInt64
    /// What the jar had when it was last compared.
    private(set) var known: [CookieLine]

    init(_ store: CookieStore) {
        self.store = store
        (known, version) = store.present
    }

    /// Whether others have changed something. A look at a number, before every request.
    var isBehind: Bool { store.version != version }

    /// Tells the store what has changed in the jar. - Returns: what makes the jar as the store now is.
    ///
    /// `isSecure`: https changed it. libcurl guards its cookies against everything else, but the jar may not yet have had those of others.
    func exchange(_ jar: [CookieLine], now seconds: Int64, isSecure: Bool) -> CookieChanges {
        var own = CookieChanges(from: known, to: jar)
        // What has expired here has expired there; another session may have been given it anew.
        own.removed.removeAll { $0.hasExpired(at: seconds) }
        let present: [CookieLine]
        (present, version) = store.apply(own, now: seconds, isSecure: isSecure)
        known = jar
        return CookieChanges(from: jar, to: present)
    }

    /// The jar as it is after what the last exchange asked for. libcurl may not have taken everything.
    func settle(_ jar: [CookieLine]) { known = jar }
}
