public import FoundationEssentials

/// A bearer token (RFC 6750), and until when it holds. Its description hides the token.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// What follows `Bearer ` in the request.
    public var value: String
    /// When the server stops to take it; `nil` where that is not known: then the first 401 tells.
    public var expiry: Date?

    /// A token of this text.
    public init(_ value: String, expiry: Date? = nil) {
        self.value = value
        self.expiry = expiry
    }

    /// Until when it holds only.
    public var description: String { "bearer token" + (expiry.map { " until \($0)" } ?? "") }
    /// The same.
    public var debugDescription: String { description }
    /// The expiry: `dump` sees no token.
    public var customMirror: Mirror { Mirror(self, children: ["expiry": expiry as Any]) }
}

/// When a ``BearerAuthentication`` fetches another token.
public struct TokenRenewal: Hashable, Sendable {
    /// How long before its ``BearerToken/expiry`` a token is replaced, so that no request arrives with one that has expired on the way; but not in
    /// the first half of its life.
    public var ahead: Duration
    /// How many tokens are fetched within ``period`` at most. One more is an error: a server that refuses each new token would have the
    /// server that gives them asked for ever.
    public var maximumCount: Int
    /// The time in which fetches are counted.
    public var period: Duration

    /// `maximumCount` below 1 counts as 1; negative durations count as none.
    public init(ahead: Duration = .seconds(30), maximumCount: Int = 5, period: Duration = .seconds(30)) {
        self.ahead = ahead
        self.maximumCount = maximumCount
        self.period = period
    }
}
