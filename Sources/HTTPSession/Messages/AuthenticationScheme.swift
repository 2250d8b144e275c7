/// How to say who one is (RFC 9110 section 11, the IANA registry of HTTP authentication schemes). Negotiate is GSSAPI's: while that asks
/// for a ticket, all of the session waits.
@nonexhaustive public enum AuthenticationScheme: String, Hashable, Sendable, CaseIterable {
    case basic, digest, bearer, ntlm, negotiate

    /// From the scheme's token, in any case of letters.
    public init?(token: some StringProtocol) {
        self.init(rawValue: token.lowercased())
    }

    /// Several of them.
    package typealias Set = Swift.Set<AuthenticationScheme>
}
