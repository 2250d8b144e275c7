internal import COpenSSL
package import FoundationEssentials

/// An incremental computation of a digest (EVP_DigestInit(3)).
package final class DigestHasher {
    package enum Function: Hashable, Sendable {
        case sha256
        case sha512
        /// SHA-512/256 (FIPS 180-4), which differs from a part of SHA-512.
        case sha512Over256
        /// For Digest authentication (RFC 7616) only.
        case md5
    }

    private let context: OpaquePointer

    /// Creates a hasher; `nil` if OpenSSL refuses the function, or has no memory.
    package init?(_ function: Function) {
        OpenSSL.prepare()
        guard let context = EVP_MD_CTX_new() else { return nil }
        self.context = context
        let type =
            switch function {
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            case .sha512Over256: EVP_sha512_256()
            case .md5: EVP_md5()
            }
        guard OpenSSLErrors.contained({ EVP_DigestInit_ex(context, type, nil) }) == 1 else { return nil }
    }

    deinit { EVP_MD_CTX_free(context) }

    package func update(_ bytes: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }

    /// Returns the digest; `nil` if OpenSSL fails.
    package func finish() -> Data? {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { return nil }
        return Data(bytes.prefix(Int(count)))
    }

    /// Returns the SHA-256 digest of bytes in memory, 32 bytes; `nil` if OpenSSL fails.
    package static func sha256(of data: Data) -> Data? {
        guard let hasher = DigestHasher(.sha256) else { return nil }
        data.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }
}
