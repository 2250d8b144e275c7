/// Which header fields of a request another origin receives after a redirect, for probes and for HTTPSession.
package enum ForwardedFields {
    /// Whether another origin receives a field with this name, in lower case: never if it identifies the user, always if it says what the client wants or sends. Any other field may be
    /// a secret of the first origin, such as `X-Api-Key`, and is received only if the user has named it, and not after a redirect from https to http.
    package static func contain(_ name: String, isNamed: Bool, isDowngrade: Bool) -> Bool {
        guard !secret.contains(name) else { return false }
        return general.contains(name) || generalPrefixes.contains { name.hasPrefix($0) } || (isNamed && !isDowngrade)
    }

    // `Referer` and `Origin` would reveal to another server where the user was. libcurl selects the cookies to send by `Host`.
    private static let secret: Set<String> = [
        "authorization", "cookie", "cookie2", "host", "origin", "proxy-authorization", "referer",
    ]
    private static let general: Set<String> = [
        "accept", "cache-control", "date", "dnt", "expect", "idempotency-key", "max-forwards", "pragma", "prefer", "priority",
        "range",
        "repr-digest", "sec-gpc", "te", "upgrade-insecure-requests", "user-agent",
    ]
    // `tus-` and `upload-` are those of resumable uploads.
    private static let generalPrefixes = ["accept-", "content-", "if-", "tus-", "upload-", "want-"]
}
