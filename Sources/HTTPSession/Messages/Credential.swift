internal import ByteComparison
internal import EventLoop

/// A user's credential. Its description hides the secret.
public struct Credential: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The lifetime of a credential.
    @nonexhaustive public enum Persistence: Hashable, Sendable {
        /// The credential is used for one task.
        case none
        /// The credential is stored in the session's ``CredentialStore`` for further tasks, once a server has accepted it.
        case forSession
    }

    /// The user's name; empty for a token.
    public let user: String
    /// The password or the bearer token (RFC 6750).
    public let secret: String
    /// Whether ``secret`` is a bearer token.
    public let isToken: Bool
    /// The lifetime of the credential.
    public let persistence: Persistence

    /// Creates a credential for Basic, Digest, NTLM and Negotiate.
    public init(user: String, password: String, persistence: Persistence = .forSession) {
        self.user = user
        secret = password
        isToken = false
        self.persistence = persistence
    }

    /// Creates a credential for Bearer.
    public init(token: String, persistence: Persistence = .forSession) {
        user = ""
        secret = token
        isToken = true
        self.persistence = persistence
    }

    /// Whether both are the same, compared by the bytes of their texts.
    public static func == (one: Credential, other: Credential) -> Bool {
        one.user.isExactly(other.user) && one.secret.isExactly(other.secret) && one.isToken == other.isToken
            && one.persistence == other.persistence
    }

    /// Hashes the user's name and the secret.
    public func hash(into hasher: inout Hasher) {
        user.hashBytes(into: &hasher)
        secret.hashBytes(into: &hasher)
    }

    /// A description that contains only the user's name.
    public var description: String { isToken ? "bearer token" : "password of \(user)" }
    /// A description that contains only the user's name.
    public var debugDescription: String { description }
    /// A mirror with the user's name only, so that `dump` does not print the secret.
    public var customMirror: Mirror { Mirror(self, children: ["user": user]) }

    /// The schemes that can use the credential.
    package var schemes: AuthenticationScheme.Set { isToken ? [.bearer] : [.basic, .digest, .ntlm, .negotiate] }
}

/// A store in memory of credentials by protection space. Sessions may share it.
public final class CredentialStore: Sendable {
    private let credentials = Locked<[AuthenticationChallenge.ProtectionSpace: Credential]>([:])

    /// Creates an empty store.
    public init() {}

    /// The credential for a protection space.
    public subscript(space: AuthenticationChallenge.ProtectionSpace) -> Credential? {
        get { credentials.withLock { $0[space] } }
        set { credentials.withLock { $0[space] = newValue } }
    }

    /// Removes all credentials.
    public func removeAll() { credentials.withLock { $0 = [:] } }
}
