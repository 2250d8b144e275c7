internal import Certificates
public import FoundationEssentials

/// The SHA-256 of a public key, as it is pinned: of the DER SubjectPublicKeyInfo (RFC 7469 section 2.4), written `sha256/BASE64`.
///
/// A pin of a key outlives the renewal of its certificate.
/// `openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64` prints it.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// The 32 bytes of the digest.
    public let digest: Data

    /// A pin of a digest that is known already. The wrong length is an `invalidConfiguration` error.
    public init(digest: Data) throws(HTTPSessionError) {
        guard digest.count == 32 else {
            throw HTTPSessionError(.invalidConfiguration, "a SHA-256 pin has 32 bytes, not \(digest.count)")
        }
        self.digest = digest
    }

    /// The pin of a certificate's key.
    init(of x509: X509Certificate) { digest = x509.keyDigest }

    /// Reads `sha256/BASE64`: 44 characters of base64 after the slash. Anything else is an `invalidConfiguration` error that names
    /// the text.
    public init(_ text: String) throws(HTTPSessionError) {
        guard let digest = Self.parse(text) else {
            throw HTTPSessionError(.invalidConfiguration, "not a pin of the form sha256/BASE64: \(excerpt(of: text))")
        }
        self.digest = digest
    }

    private static func parse(_ text: String) -> Data? {
        let scheme = "sha256/"
        guard text.utf8.count == scheme.utf8.count + 44, text.hasPrefix(scheme) else { return nil }
        let encoded = String(text.dropFirst(scheme.count))
        // Encoded again, because the decoder passes over stray bits in the last character: one pin has one spelling.
        guard let digest = Data(base64Encoded: encoded), digest.count == 32, digest.base64EncodedString() == encoded else {
            return nil
        }
        return digest
    }

    /// The pin as it is written.
    public var description: String { "sha256/\(digest.base64EncodedString())" }
}

/// What an error quotes of a text that does not parse: one line of at most 80 characters.
func excerpt(of text: String) -> String {
    let line = text.prefix(80).map { character in
        character.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } ? "\u{FFFD}" : character
    }
    return "“\(String(line))\(text.count > 80 ? "…" : "")”"
}
