internal import COpenSSL
package import Foundation

/// A hash function at work (EVP_DigestInit(3)).
final class DigestHasher {
    private let algorithm: ContentDigest.Algorithm
    private let context: OpaquePointer

    /// `nil` where the library refuses the algorithm, or has no memory.
    init?(_ algorithm: ContentDigest.Algorithm) {
        guard let context = EVP_MD_CTX_new() else { return nil }
        let function =
            switch algorithm {
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            }
        self.algorithm = algorithm
        self.context = context
        guard OpenSSLErrors.contained({ EVP_DigestInit_ex(context, function, nil) }) == 1 else { return nil }
    }

    deinit { EVP_MD_CTX_free(context) }

    func update(_ bytes: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }

    func finish() -> ContentDigest? {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { return nil }
        return ContentDigest(algorithm, Data(bytes.prefix(Int(count))))
    }
}

extension ContentDigest {
    /// Of bytes in memory; `nil` where the library has none.
    package static func sha256(of data: Data) -> ContentDigest? {
        guard let hasher = DigestHasher(.sha256) else { return nil }
        data.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }
}
