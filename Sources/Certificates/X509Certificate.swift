package import FoundationEssentials

/// An X.509 certificate as a value.
package struct X509Certificate: Hashable, Sendable {
    package let derBytes: Data
    /// The subject's name on one line (RFC 2253).
    package let subject: String
    /// SHA-256 of the DER SubjectPublicKeyInfo: 32 bytes.
    package let keyDigest: Data

    package init(derBytes: Data, subject: String, keyDigest: Data) {
        self.derBytes = derBytes
        self.subject = subject
        self.keyDigest = keyDigest
    }

    /// Returns whether the certificates' bytes are equal.
    package static func == (left: Self, right: Self) -> Bool { left.derBytes == right.derBytes }

    /// Hashes the public key's digest: `Data` hashes only its first bytes, and those of certificates are alike.
    package func hash(into hasher: inout Hasher) { hasher.combine(keyDigest) }
}
