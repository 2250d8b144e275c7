internal import FoundationEssentials

/// The cookies of the session's store, which other sessions may use as well.
extension TaskDriver {
    /// Returns the stored cookies for the request that is about to be sent.
    func transferNeedsCookies(isSecure: Bool) -> [UInt8] {
        guard let store = settings.network.cookieStore, !store.isEmpty, let scope = cookieScope else { return [] }
        return store.field(for: scope, isSecure: isSecure || scope.isSecure, now: cookieTime)
    }

    /// Stores the cookies that a response sets. A proxy's response (407) sets none for the server.
    func storeCookies(of head: ResponseHead) {
        guard head.has("set-cookie"), head.statusCode != 407, let store = settings.network.cookieStore, let scope = cookieScope
        else { return }
        store.receive(head, from: scope, isSecure: scope.isSecure || transfer?.isUpgraded == true, now: cookieTime)
    }

    /// The URL of the present attempt, for its cookies; `nil` if the request has none.
    private var cookieScope: CookieScope? {
        let request = machine.attempt.adaptedRequest ?? machine.request
        return request.options.handlesCookies == false ? nil : CookieScope(request.url)
    }

    private var cookieTime: Int64 { Int64(loop.transport.date().timeIntervalSince1970) }
}
