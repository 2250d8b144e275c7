/// What a server (401) or a proxy (407) asks before it answers (RFC 9110 section 11).
public struct AuthenticationChallenge: Hashable, Sendable {
    /// What credentials are good for: one realm of one origin. A proxy's are good for all that is reached through it.
    public struct ProtectionSpace: Hashable, Sendable {
        /// The server's, or the proxy's where a proxy asks.
        public let origin: Origin
        /// The text of the `realm` parameter; empty where there is none.
        public let realm: String
        /// Whether a proxy asks.
        public let isProxy: Bool

        /// For a ``CredentialStore`` that is to know a credential beforehand.
        public init(origin: Origin, realm: String, isProxy: Bool = false) {
            self.origin = origin
            self.realm = realm
            self.isProxy = isProxy
        }
    }

    /// The scheme, of those that this library knows.
    public let scheme: AuthenticationScheme
    /// What the credentials would be good for.
    public let protectionSpace: ProtectionSpace
    /// The scheme's parameters, names in lower case.
    public let parameters: [String: String]
    /// How often credentials have been refused for this protection space by this task.
    public var previousFailureCount: Int

    /// What a response's `WWW-Authenticate` or `Proxy-Authenticate` fields ask, of the first ``AuthenticateField/most`` that which this
    /// library knows, strongest scheme first.
    package static func all(in head: ResponseHead, from origin: Origin) -> [AuthenticationChallenge] {
        let isProxy = head.statusCode == 407
        return head.values(of: isProxy ? "proxy-authenticate" : "www-authenticate", limit: 32)
            .flatMap { AuthenticateField.challenges(in: $0) }
            .prefix(AuthenticateField.most)
            .compactMap { raw in
                AuthenticationScheme(token: raw.scheme).map { scheme in
                    AuthenticationChallenge(
                        scheme: scheme,
                        protectionSpace: .init(origin: origin, realm: raw.parameters["realm"] ?? "", isProxy: isProxy),
                        parameters: raw.parameters, previousFailureCount: 0)
                }
            }
            .sorted { $0.scheme.strength > $1.scheme.strength }
    }
}

extension AuthenticationScheme {
    /// Which of several offered schemes to use (RFC 9110 section 11.6.1: the most secure one).
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

/// The grammar of `WWW-Authenticate` (RFC 9110 section 11.6.1): a list whose elements are lists, with the same comma between.
package enum AuthenticateField {
    package struct Challenge: Hashable, Sendable {
        package var scheme: String
        package var parameters: [String: String] = [:]
        package var token68: String?
    }

    /// No server has as many schemes and realms for one place. Each is looked up, and its handler asked.
    static let most = 32

    /// The first ``most``.
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
                // `name=value` belongs to the challenge before.
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
        private var rest: Substring.UTF8View

        init(_ text: String) { rest = Substring(text).utf8 }

        /// - Returns: whether anything is left.
        mutating func skipSeparators() -> Bool {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x2C }
            return !rest.isEmpty
        }

        mutating func skipSpaces() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
        mutating func skipOne() { rest = rest.dropFirst() }

        mutating func takes(_ character: Character) -> Bool {
            guard rest.first == character.asciiValue else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func token() -> String? {
            let word = rest.prefix(while: Scanner.isTokenByte)
            guard !word.isEmpty else { return nil }
            rest = rest[word.endIndex...]
            return String(Substring(word))
        }

        /// A single value instead of parameters, such as Negotiate's: taken only when the element ends behind it.
        mutating func token68() -> String? {
            let word = rest.prefix { Scanner.isTokenByte($0) || $0 == 0x2F }
            let padded = rest[word.endIndex...].prefix { $0 == 0x3D }
            let after = rest[padded.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
            guard !word.isEmpty, after.isEmpty || after.first == 0x2C else { return nil }
            let text = String(Substring(rest[..<padded.endIndex]))
            rest = after
            return text
        }

        mutating func quotedOrToken() -> String {
            guard takes("\"") else { return token() ?? "" }
            var bytes: [UInt8] = []
            while let byte = rest.first {
                rest = rest.dropFirst()
                if byte == 0x22 { break }
                if byte == 0x5C, let escaped = rest.first {
                    bytes.append(escaped)
                    rest = rest.dropFirst()
                } else {
                    bytes.append(byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// RFC 9110 section 5.6.2.
        private static func isTokenByte(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
    }
}
