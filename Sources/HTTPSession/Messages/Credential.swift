internal import EventLoop

/// Who one is. Its description hides the secret.
public struct Credential: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is good for.
    @nonexhaustive public enum Persistence: Hashable, Sendable {
        /// For the one task.
        case none
        /// In the store that it was kept in, until that ends.
        case forSession
    }

    /// Empty for a token.
    public let user: String
    /// A password, or a bearer token (RFC 6750).
    public let secret: String
    /// Whether ``secret`` is a token.
    public let isToken: Bool
    /// How long it is good for.
    public let persistence: Persistence

    /// For Basic, Digest, NTLM and Negotiate.
    public init(user: String, password: String, persistence: Persistence = .forSession) {
        self.user = user
        secret = password
        isToken = false
        self.persistence = persistence
    }

    /// For Bearer.
    public init(token: String, persistence: Persistence = .forSession) {
        user = ""
        secret = token
        isToken = true
        self.persistence = persistence
    }

    /// The user's name only.
    public var description: String { isToken ? "bearer token" : "password of \(user)" }
    /// The same.
    public var debugDescription: String { description }
    /// The user's name: `dump` sees no secret.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }

    /// The schemes that can say it.
    package var schemes: AuthenticationScheme.Set { isToken ? [.bearer] : [.basic, .digest, .ntlm, .negotiate] }
}

/// Credentials by protection space, in memory, for any number of sessions.
public final class CredentialStore: Sendable {
    private let credentials = Locked<[AuthenticationChallenge.ProtectionSpace: Credential]>([:])

    /// An empty store.
    public init() {}

    /// What is kept for the space.
    public subscript(space: AuthenticationChallenge.ProtectionSpace) -> Credential? {
        get { credentials.withLock { $0[space] } }
        set { credentials.withLock { $0[space] = newValue } }
    }

    /// Forgets everything.
    public func removeAll() { credentials.withLock { $0 = [:] } }
}
