internal import COpenSSL

/// A public key whose use costs the verifier of a signature much. Its numbers are random, and nobody has its private key.
package enum CostlyKey: Sendable {
    case rsa(bits: Int, exponentBits: Int)
    case dsa(bits: Int)

    /// Returns the key (EVP_PKEY), which the caller frees.
    func decoded() -> OpaquePointer? {
        let bytes = subjectPublicKeyInfo
        return bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return d2i_PUBKEY(nil, &next, buffer.count)
        }
    }

    /// The key in DER (RFC 5280 section 4.1).
    private var subjectPublicKeyInfo: [UInt8] {
        switch self {
        case .rsa(let bits, let exponentBits):
            // rsaEncryption, 1.2.840.113549.1.1.1
            let algorithm = Self.sequence([6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 1, 5, 0])
            let key = Self.sequence(Self.number(bits) + Self.number(exponentBits))
            return Self.sequence(algorithm + Self.value(3, [0] + key))
        case .dsa(let bits):
            // id-dsa, 1.2.840.10040.4.1
            let parameters = Self.sequence(Self.number(bits) + Self.number(256) + Self.number(bits - 1))
            let algorithm = Self.sequence([6, 7, 42, 134, 72, 206, 56, 4, 1] + parameters)
            return Self.sequence(algorithm + Self.value(3, [0] + Self.number(bits - 2)))
        }
    }

    /// An odd number of this many bits.
    private static func number(_ bits: Int) -> [UInt8] {
        var bytes = (0..<(bits + 7) / 8).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 73) }
        let top = (bits - 1) % 8
        bytes[0] = bytes[0] & UInt8((1 << top) - 1) | UInt8(1 << top)
        bytes[bytes.count - 1] |= 1
        return value(2, top == 7 ? [0] + bytes : bytes)
    }

    private static func sequence(_ content: [UInt8]) -> [UInt8] { value(0x30, content) }

    private static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 128 { return [tag, UInt8(count)] + content }
        if count < 256 { return [tag, 0x81, UInt8(count)] + content }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 255)] + content
    }
}
