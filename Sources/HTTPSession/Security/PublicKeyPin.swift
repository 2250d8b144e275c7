internal import Certificates
public import FoundationEssentials

/// A pin of a public key: the SHA-256 of its DER SubjectPublicKeyInfo (RFC 7469 section 2.4), written `sha256/BASE64`.
///
/// The pin stays valid when the certificate is renewed with the same key. To print the base64 text of a certificate's pin:
/// `openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64`.
public struct PublicKeyPin: Sendable, Hashable, CustomStringConvertible {
    /// The 32 bytes of the digest.
    public let digest: Data

    /// Creates a pin from a digest.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the digest does not have 32 bytes.
    public init(digest: Data) throws(HTTPSessionError) {
        guard digest.count == 32 else {
            throw HTTPSessionError(.invalidConfiguration, "a SHA-256 pin has 32 bytes, not \(digest.count)")
        }
        self.digest = digest
    }

    /// Creates the pin of a certificate's key.
    init(of x509: X509Certificate) { digest = x509.keyDigest }

    /// Parses `sha256/BASE64`, with 44 characters of base64 after the slash.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the text, if it has another form.
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
        // Encoded again, because the decoder ignores surplus bits of the last character: a pin has one spelling only.
        guard let digest = Data(base64Encoded: encoded), digest.count == 32, digest.base64EncodedString() == encoded else {
            return nil
        }
        return digest
    }

    /// The text of the pin: `sha256/BASE64`.
    public var description: String { "sha256/\(digest.base64EncodedString())" }
}

/// The quotation of a text in an error: one line of at most 80 characters, with control characters replaced.
func excerpt(of text: String) -> String {
    let line = text.prefix(80).map { character in
        character.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } ? "\u{FFFD}" : character
    }
    return "“\(String(line))\(text.count > 80 ? "…" : "")”"
}
