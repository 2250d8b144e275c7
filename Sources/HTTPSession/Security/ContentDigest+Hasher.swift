internal import Certificates
package import FoundationEssentials

extension ContentDigest.Algorithm {
    /// A hasher of this algorithm; `nil` if OpenSSL does not provide it.
    var hasher: DigestHasher? {
        switch self {
        case .sha256: DigestHasher(.sha256)
        case .sha512: DigestHasher(.sha512)
        }
    }
}

extension ContentDigest {
    /// Creates the digest of the bytes that the hasher has received; `nil` if OpenSSL fails.
    init?(_ algorithm: Algorithm, of hasher: DigestHasher) {
        guard let bytes = hasher.finish() else { return nil }
        self.init(algorithm, bytes)
    }

    /// The SHA-256 digest of bytes in memory; `nil` if OpenSSL fails.
    package static func sha256(of data: Data) -> ContentDigest? {
        DigestHasher.sha256(of: data).flatMap { ContentDigest(.sha256, $0) }
    }
}
