internal import ByteComparison
internal import Wire

/// An authentication challenge of a server (401) or a proxy (407) (RFC 9110 section 11).
public struct AuthenticationChallenge: Hashable, Sendable {
    /// The scope of credentials: one realm of one origin. The credentials of a proxy are valid for all servers behind it.
    public struct ProtectionSpace: Hashable, Sendable {
        /// The origin of the server, or of the proxy if a proxy sends the challenge.
        public let origin: Origin
        /// The value of the `realm` parameter; empty if there is none. In a field that is not UTF-8, it is read as ISO 8859-1.
        public let realm: String
        /// Whether a proxy sends the challenge.
        public let isProxy: Bool

        /// Creates a protection space, for example to store a credential in a ``CredentialStore`` in advance.
        public init(origin: Origin, realm: String, isProxy: Bool = false) {
            self.origin = origin
            self.realm = realm
            self.isProxy = isProxy
        }

        /// Whether both are the same; realms are compared by their bytes.
        public static func == (one: ProtectionSpace, other: ProtectionSpace) -> Bool {
            one.origin == other.origin && one.realm.isExactly(other.realm) && one.isProxy == other.isProxy
        }

        /// Hashes the origin, the realm and whether a proxy sends the challenge.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(origin)
            realm.hashBytes(into: &hasher)
            hasher.combine(isProxy)
        }
    }

    /// The authentication scheme.
    public let scheme: AuthenticationScheme
    /// The scope of the requested credentials.
    public let protectionSpace: ProtectionSpace
    /// The scheme's parameters, with names in lower case.
    public let parameters: [String: String]
    /// The number of credentials that the server has refused for this protection space during this task.
    public var previousFailureCount: Int
    /// Whether a character of the parameters is one byte of the field (ISO 8859-1), which is not UTF-8.
    private(set) var isLatin1 = false

    /// Creates a challenge, for tests of handlers. The names of the parameters are in lower case.
    public init(
        scheme: AuthenticationScheme, protectionSpace: ProtectionSpace, parameters: [String: String] = [:],
        previousFailureCount: Int = 0
    ) {
        self.scheme = scheme
        self.protectionSpace = protectionSpace
        self.parameters = parameters
        self.previousFailureCount = previousFailureCount
    }

    /// The challenges in a response's `WWW-Authenticate` or `Proxy-Authenticate` fields, strongest scheme first. Only the first
    /// ``AuthenticateField/most`` challenges are read, and unknown schemes and algorithms are ignored.
    package static func all(in head: ResponseHead, from origin: Origin) -> [AuthenticationChallenge] {
        let isProxy = head.statusCode == 407
        return head.distinctValues(of: isProxy ? "proxy-authenticate" : "www-authenticate", limit: 32)
            .flatMap { value in AuthenticateField.challenges(in: value.text).map { ($0, value.isLatin1) } }
            .prefix(AuthenticateField.most)
            .compactMap { raw, isLatin1 in
                AuthenticationScheme(token: raw.scheme).map { scheme in
                    var challenge = AuthenticationChallenge(
                        scheme: scheme,
                        protectionSpace: .init(origin: origin, realm: raw.parameters["realm"] ?? "", isProxy: isProxy),
                        parameters: raw.parameters, previousFailureCount: 0)
                    challenge.isLatin1 = isLatin1
                    return challenge
                }
            }
            // Nobody is asked about a Digest challenge that cannot be answered, such as one with an unknown algorithm.
            .filter { $0.scheme != .digest || DigestChallenge($0) != nil }
            .sorted { $0.scheme.strength > $1.scheme.strength }
    }
}

extension AuthenticationScheme {
    /// The rank of the scheme among those offered (RFC 9110 section 11.6.1: the most secure one is used).
    var strength: Int {
        switch self {
        case .negotiate: 5
        case .bearer: 4
        case .digest: 3
        case .ntlm: 2
        case .basic: 1
        }
    }
}

/// The grammar of `WWW-Authenticate` (RFC 9110 section 11.6.1): a list of lists, both separated by commas.
package enum AuthenticateField {
    package struct Challenge: Hashable, Sendable {
        package var scheme: String
        package var parameters: [String: String] = [:]
        package var token68: String?
    }

    /// The most challenges that are read. No real server sends as many, and each costs a lookup and a handler's question.
    static let most = 32

    /// The first ``most`` challenges of a field's value.
    package static func challenges(in text: String) -> [Challenge] {
        var challenges: [Challenge] = []
        var scanner = Scanner(text)
        while scanner.skipSeparators() {
            guard let word = scanner.token() else {
                scanner.skipOne()
                continue
            }
            scanner.skipSpaces()
            if scanner.takes("="), !challenges.isEmpty {
                // `name=value` belongs to the previous challenge.
                scanner.skipSpaces()
                let value = scanner.quotedOrToken()
                challenges[challenges.count - 1].parameters[word.lowercased()] = value
            } else {
                guard challenges.count < most else { break }
                var challenge = Challenge(scheme: word)
                challenge.token68 = scanner.token68()
                challenges.append(challenge)
            }
        }
        return challenges
    }

    private struct Scanner {
        private var remaining: Substring.UTF8View

        init(_ text: String) { remaining = Substring(text).utf8 }

        /// Skips spaces and commas. - Returns: whether text remains.
        mutating func skipSeparators() -> Bool {
            remaining = remaining.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x2C }
            return !remaining.isEmpty
        }

        mutating func skipSpaces() { remaining = remaining.drop { $0 == 0x20 || $0 == 0x09 } }
        mutating func skipOne() { remaining = remaining.dropFirst() }

        mutating func takes(_ character: Character) -> Bool {
            guard remaining.first == character.asciiValue else { return false }
            remaining = remaining.dropFirst()
            return true
        }

        mutating func token() -> String? {
            let word = remaining.prefix(while: HTTPGrammar.isTokenByte)
            guard !word.isEmpty else { return nil }
            remaining = remaining[word.endIndex...]
            return String(Substring(word))
        }

        /// A single value instead of parameters, such as Negotiate's; `nil` unless the element ends behind it.
        mutating func token68() -> String? {
            let word = remaining.prefix { HTTPGrammar.isTokenByte($0) || $0 == 0x2F }
            let padded = remaining[word.endIndex...].prefix { $0 == 0x3D }
            let after = remaining[padded.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
            guard !word.isEmpty, after.isEmpty || after.first == 0x2C else { return nil }
            let text = String(Substring(remaining[..<padded.endIndex]))
            remaining = after
            return text
        }

        mutating func quotedOrToken() -> String {
            guard takes("\"") else { return token() ?? "" }
            var bytes: [UInt8] = []
            while let byte = remaining.first {
                remaining = remaining.dropFirst()
                if byte == 0x22 { break }
                if byte == 0x5C, let escaped = remaining.first {
                    bytes.append(escaped)
                    remaining = remaining.dropFirst()
                } else {
                    bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

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
