internal import Certificates
internal import FoundationEssentials

extension DigestChallenge.Algorithm {
    /// Returns the hash of bytes in hexadecimal digits; `nil` if OpenSSL does not have the function, as with MD5 in FIPS mode.
    func hash(_ bytes: UnsafeRawBufferPointer) -> String? {
        let hasher =
            switch self {
            case .md5: DigestHasher(.md5)
            case .sha256: DigestHasher(.sha256)
            case .sha512Over256: DigestHasher(.sha512Over256)
            }
        hasher?.update(bytes)
        return hasher?.finish().map { data in
            data.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }

    /// Returns the hash of a text in UTF-8, or in ISO 8859-1.
    func hash(_ text: String, isLatin1: Bool = false) -> String? {
        if isLatin1 { return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }.withUnsafeBytes { hash($0) } }
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }
}
