internal import ByteComparison
internal import Wire

/// A Digest challenge (RFC 7616 section 3.3) that the session can answer.
struct DigestChallenge: Hashable, Sendable {
    /// The hash function of the challenge.
    enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case md5 = "md5"
        case sha256 = "sha-256"
        case sha512Over256 = "sha-512-256"
    }

    /// The quality of protection.
    enum Protection: Hashable, Sendable {
        /// None, as before RFC 2617.
        case none
        case auth
        /// The response covers the request's body, too.
        case authWithBody
    }

    @ExactString private var realm: String
    @ExactString private var nonce: String
    private let opaque: ExactString?
    let algorithm: Algorithm
    /// The algorithm as the server has written it; `nil` for none, which is MD5.
    private let algorithmToken: ExactString?
    /// Whether the hash of the credential includes the nonces (`-sess`).
    private let isSession: Bool
    let protection: Protection
    private let hashesUser: Bool
    /// Whether a character of the realm, the nonce and the opaque is one byte of what the server has sent. So is each character of the answer.
    let isLatin1: Bool

    /// Whether the server refuses only the age of the nonce, and not the credential (`stale`).
    static func isStale(_ challenge: AuthenticationChallenge) -> Bool {
        challenge.scheme == .digest && challenge.parameters["stale"].map { $0.lowercased().isExactly("true") } == true
    }

    /// Reads a challenge; `nil` for another scheme, and for one that no answer is defined for: without a realm or a nonce, with an unknown algorithm, or
    /// with unknown qualities of protection only.
    init?(_ challenge: AuthenticationChallenge) {
        let parameters = challenge.parameters
        guard challenge.scheme == .digest, let realm = parameters["realm"], let nonce = parameters["nonce"], !nonce.isEmpty,
            !parameters.values.contains(where: \.hasControlCharacter)
        else { return nil }
        var name = (parameters["algorithm"] ?? "md5").lowercased()
        isSession = name.hasSuffix("-sess")
        if isSession { name.removeLast("-sess".count) }
        guard let algorithm = Algorithm.allCases.first(where: { $0.rawValue.isExactly(name) }) else { return nil }
        if let offered = parameters["qop"] {
            let words = offered.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
            if words.containsExactly("auth") {
                protection = .auth
            } else if words.containsExactly("auth-int") {
                protection = .authWithBody
            } else {
                return nil
            }
        } else {
            protection = .none
        }
        self.realm = realm
        self.nonce = nonce
        opaque = parameters["opaque"].map { ExactString($0) }
        self.algorithm = algorithm
        algorithmToken = parameters["algorithm"].map { ExactString($0) }
        isLatin1 = challenge.isLatin1
        hashesUser = parameters["userhash"].map { $0.lowercased().isExactly("true") } == true
    }

    /// The request that an answer belongs to.
    struct Subject {
        var method: String
        /// The request target: path and query, or host and port for CONNECT.
        var target: String
        /// The number of requests with this nonce, from 1.
        var count: UInt32
        /// A random text.
        var clientNonce: String
        /// The hash of the body in hexadecimal digits; `nil` if it is not known.
        var bodyHash: String?
    }

    /// Makes the value of `Authorization` or `Proxy-Authorization` (section 3.4).
    ///
    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The user's password.
    ///   - subject: The request.
    ///   - hash: The hash function, with a result in hexadecimal digits.
    /// The realm, the nonce and the opaque have the bytes that the server has sent, in the value and in what is hashed: if the challenge is
    /// ``isLatin1``, each character of the value and of the hashed text is one byte.
    ///
    /// - Returns: The value; `nil` if the body's hash is needed and not known, or if the hash function fails.
    func answer(user: String, password: String, to subject: Subject, hash: (String) -> String?) -> String? {
        let user = isLatin1 ? DigestChallenge.octets(of: user) : user
        let password = isLatin1 ? DigestChallenge.octets(of: password) : password
        guard var secret = hash("\(user):\(realm):\(password)") else { return nil }
        if isSession {
            guard let sessionSecret = hash("\(secret):\(nonce):\(subject.clientNonce)") else { return nil }
            secret = sessionSecret
        }
        var request = "\(subject.method):\(subject.target)"
        if protection == .authWithBody {
            guard let bodyHash = subject.bodyHash else { return nil }
            request += ":\(bodyHash)"
        }
        let digits = String(subject.count, radix: 16)
        let count = String(repeating: "0", count: max(0, 8 - digits.utf8.count)) + digits
        let quality = protection == .authWithBody ? "auth-int" : "auth"
        guard let requestHash = hash(request),
            let response = hash(
                protection == .none
                    ? "\(secret):\(nonce):\(requestHash)"
                    : "\(secret):\(nonce):\(count):\(subject.clientNonce):\(quality):\(requestHash)"),
            let name = hashesUser ? hash("\(user):\(realm)") : user
        else { return nil }
        var parts = [
            "username=\(DigestChallenge.quoted(name))", "realm=\(DigestChallenge.quoted(realm))",
            "nonce=\(DigestChallenge.quoted(nonce))", "uri=\(DigestChallenge.quoted(subject.target))", "response=\"\(response)\"",
        ]
        if let algorithmToken { parts.append("algorithm=\(algorithmToken.wrappedValue)") }
        if let opaque { parts.append("opaque=\(DigestChallenge.quoted(opaque.wrappedValue))") }
        if protection != .none { parts.append("qop=\(quality), nc=\(count)") }
        if protection != .none || isSession { parts.append("cnonce=\(DigestChallenge.quoted(subject.clientNonce))") }
        if hashesUser { parts.append("userhash=true") }
        return "Digest \(parts.joined(separator: ", "))"
    }

    /// A text with a character for each byte of the UTF-8 of `text`.
    private static func octets(of text: String) -> String {
        String(String.UnicodeScalarView(text.utf8.map { Unicode.Scalar($0) }))
    }

    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
    }
}
