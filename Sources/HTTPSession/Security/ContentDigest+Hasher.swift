internal import Certificates
package import FoundationEssentials

extension ContentDigest.Algorithm {
    /// A hasher of it; `nil` where OpenSSL has none.
    var hasher: DigestHasher? {
        switch self {
        case .sha256: DigestHasher(.sha256)
        case .sha512: DigestHasher(.sha512)
        }
    }
}

extension ContentDigest {
    /// Of what the hasher was given; `nil` where OpenSSL fails.
    init?(_ algorithm: Algorithm, of hasher: DigestHasher) {
        guard let bytes = hasher.finish() else { return nil }
        self.init(algorithm, bytes)
    }

    /// Of bytes in memory; `nil` where OpenSSL fails.
    package static func sha256(of data: Data) -> ContentDigest? {
        DigestHasher.sha256(of: data).flatMap { ContentDigest(.sha256, $0) }
    }
}
