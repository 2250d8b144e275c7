public import FoundationEssentials

/// A bearer token (RFC 6750) and its expiry. Its description hides the token.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The text that follows `Bearer ` in the `Authorization` field.
    public var value: String
    /// The time at which the server stops to accept the token; `nil` if it is unknown. Then the first 401 response shows it.
    public var expiry: Date?

    /// A token with the given text.
    public init(_ value: String, expiry: Date? = nil) {
        self.value = value
        self.expiry = expiry
    }

    /// A description that contains only the expiry.
    public var description: String { "bearer token" + (expiry.map { " until \($0)" } ?? "") }
    /// A description that contains only the expiry.
    public var debugDescription: String { description }
    /// A mirror with the expiry only, so that `dump` does not print the token.
    public var customMirror: Mirror { Mirror(self, children: ["expiry": expiry as Any]) }
}

/// The rules by which a ``BearerAuthentication`` fetches another token.
public struct TokenRenewal: Hashable, Sendable {
    /// The time before a token's ``BearerToken/expiry`` at which it is replaced, so that it does not expire on its way to the
    /// server. A token is never replaced in the first half of its lifetime. Default: 30 s.
    public var ahead: Duration
    /// The most tokens fetched within ``period``; one more is an error. The limit protects the token server if another server
    /// refuses every new token. Default: 5.
    public var maximumCount: Int
    /// The period in which fetches are counted. Default: 30 s.
    public var period: Duration

    /// The given rules. A `maximumCount` below 1 counts as 1; negative durations count as zero.
    public init(ahead: Duration = .seconds(30), maximumCount: Int = 5, period: Duration = .seconds(30)) {
        self.ahead = ahead
        self.maximumCount = maximumCount
        self.period = period
    }
}
