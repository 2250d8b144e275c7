/// An HTTP authentication scheme (RFC 9110 section 11, the IANA registry of HTTP authentication schemes). Negotiate uses GSSAPI,
/// which blocks the complete session while it requests a ticket.
@nonexhaustive public enum AuthenticationScheme: String, Hashable, Sendable, CaseIterable {
    case basic, digest, bearer, ntlm, negotiate

    /// Creates the scheme with the given token, in upper or lower case; `nil` if the token is unknown.
    public init?(token: some StringProtocol) {
        self.init(rawValue: token.lowercased())
    }

    /// A set of schemes.
    package typealias Set = Swift.Set<AuthenticationScheme>
}
