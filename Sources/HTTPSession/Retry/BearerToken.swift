internal import ByteComparison
public import FoundationEssentials

/// A bearer token (RFC 6750) and its expiry. Its description hides the token.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The token, without `Bearer `.
    public var value: String
    /// The time at which the token expires; `nil` if it is not known. Then the token is replaced after the first 401.
    public var expiry: Date?

    /// Creates a token. By default its expiry is not known.
    public init(_ value: String, expiry: Date? = nil) {
        self.value = value
        self.expiry = expiry
    }

    /// Whether both are the same, compared by the bytes of the tokens.
    public static func == (one: BearerToken, other: BearerToken) -> Bool {
        one.value.isExactly(other.value) && one.expiry == other.expiry
    }

    /// Hashes the token and its expiry.
    public func hash(into hasher: inout Hasher) {
        value.hashBytes(into: &hasher)
        hasher.combine(expiry)
    }

    /// The expiry, without the token.
    public var description: String { "bearer token" + (expiry.map { " until \($0)" } ?? "") }
    /// The expiry, without the token.
    public var debugDescription: String { description }
    /// The expiry, so that `dump` does not print the token.
    public var customMirror: Mirror { Mirror(self, children: ["expiry": expiry as Any]) }
}

/// The rule by which a ``BearerAuthentication`` fetches tokens.
public struct TokenRenewal: Hashable, Sendable {
    /// The time before its ``BearerToken/expiry`` at which a token is replaced, so that it does not expire while a request is sent; 30 s by default.
    ///
    /// A token is never replaced in the first half of its lifetime.
    public var ahead: Duration
    /// The largest number of tokens that are fetched within ``period``; 5 by default.
    ///
    /// A further fetch is an error (``HTTPSessionError/Code/authenticationFailed``). Without a limit, a server that refuses every new token would
    /// cause endless requests to the server that issues them.
    public var maximumCount: Int
    /// The time in which fetches are counted; 30 s by default.
    public var period: Duration

    /// Creates a rule. A `maximumCount` below 1 counts as 1; a negative duration counts as zero.
    public init(ahead: Duration = .seconds(30), maximumCount: Int = 5, period: Duration = .seconds(30)) {
        self.ahead = ahead
        self.maximumCount = maximumCount
        self.period = period
    }
}
