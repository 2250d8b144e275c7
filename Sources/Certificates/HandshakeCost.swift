internal import COpenSSL
internal import CTLSReading
internal import EventLoop

/// The limits of what a server may cost its client before it has proved who it is.
///
/// Anybody can send certificates whose verification takes seconds: an RSA key with an exponent as long as its modulus, DSA with large
/// numbers, thousands of names that are compared with thousands of constraints. Servers of public authorities are far below the limits.
/// The C part of them is in CTLSReading/cost.c.
enum HandshakeCost {
    /// The largest RSA modulus in bits.
    static let maximumModulus: Int32 = 8192
    /// The largest public exponent of RSA in bits. All authorities use 65,537.
    static let maximumExponent: Int32 = 33
    /// The largest product of the names of a chain and of its constraints on names (RFC 5280 section 4.2.1.10). Each pair is compared.
    static let maximumNameComparisons = 10_000
    /// The largest number of certificates between the server's own and the authority.
    static let maximumDepth: Int32 = 10
    /// The time of processor for one handshake and what follows it, in nanoseconds: 50 ms, and more on a slow machine, where it is that of
    /// 500 key agreements of X25519. Measured (OpenSSL 3.0.19, 2.5 GHz): an honest handshake takes 0.3 to 3 ms; a busy
    /// virtual machine counts the time that its host takes from it, too (29 ms were seen).
    static let maximumNanoseconds: Int64 = max(50_000_000, min(agreementNanoseconds, 1_000_000_000) * 500)
    /// The bytes of the application for which the same time is allowed again.
    static let plaintextShare = 1 << 20
    /// The time for each byte of the user's own revocation lists, in nanoseconds. Their signatures are verified in each handshake, at about 3 ns a byte,
    /// and the first one sorts their entries.
    static let nanosecondsPerListByte: Int64 = 10

    /// The limit of a connection, in nanoseconds.
    static func limit(plaintextBytes: Int, listBytes: Int) -> Int64 {
        maximumNanoseconds * Int64(1 + plaintextBytes / plaintextShare) + nanosecondsPerListByte * Int64(listBytes)
    }

    /// Returns the reason for which OpenSSL has ended a handshake by a limit of this client, as the end of a sentence about the server; `nil` if
    /// the reason is another one. Called once on the thread of the handshake.
    static func excess(ofError reason: Int32) -> String? {
        let group = netwatch_tls_take_refused_group()
        switch reason {
        case SSL_R_DH_KEY_TOO_SMALL where group > 0:
            return "chooses a Diffie-Hellman group of \(group) bits, and the limit is \(netwatch_tls_maximum_group_bits)"
        case SSL_R_EXCESSIVE_MESSAGE_SIZE:
            let limit = netwatch_tls_maximum_certificate_bytes / 1024
            return
                "sends a message of the handshake that is too long; the limit is \(limit) KiB for certificates, and 16 KiB for others"
        default: return nil
        }
    }

    /// The time of one key agreement of X25519, the shortest of three. 0 if OpenSSL has none.
    private static let agreementNanoseconds: Int64 = OpenSSLErrors.contained {
        var key: OpaquePointer?
        let generation = EVP_PKEY_CTX_new_id(EVP_PKEY_X25519, nil)
        defer {
            EVP_PKEY_CTX_free(generation)
            EVP_PKEY_free(key)
        }
        guard EVP_PKEY_keygen_init(generation) == 1, EVP_PKEY_generate(generation, &key) == 1,
            let agreement = EVP_PKEY_CTX_new(key, nil)
        else { return 0 }
        defer { EVP_PKEY_CTX_free(agreement) }
        var shortest: Int64 = 1_000_000_000
        for _ in 0..<3 {
            let began = ProcessorClock.ofThread()
            var secret = [UInt8](repeating: 0, count: 32)
            var count = secret.count
            guard EVP_PKEY_derive_init(agreement) == 1, EVP_PKEY_derive_set_peer(agreement, key) == 1,
                EVP_PKEY_derive(agreement, &secret, &count) == 1
            else { return 0 }
            shortest = min(shortest, ProcessorClock.ofThread() - began)
        }
        return shortest
    }
}

extension PeerChain {
    /// The reason why the verification of these certificates would cost more than that of an honest server's, as the end of a sentence
    /// about the server; `nil` if there is none. The certificates are only decoded, which takes a time that is linear in their size.
    var excess: String? {
        var (names, constraints) = (0, 0)
        for index in 0..<max(0, OPENSSL_sk_num(sent)) {
            guard let certificate = OPENSSL_sk_value(sent, index).map({ OpaquePointer($0) }) else { continue }
            if let key = X509_get0_pubkey(certificate), let excess = Self.excess(of: key) { return excess }
            names += Self.nameCount(of: certificate)
            constraints += Self.constraintCount(of: certificate)
        }
        let (comparisons, isTooLarge) = names.multipliedReportingOverflow(by: constraints)
        guard isTooLarge || comparisons > HandshakeCost.maximumNameComparisons else { return nil }
        return "sends certificates with \(names) names and \(constraints) constraints on names, "
            + "and the limit for the product is \(HandshakeCost.maximumNameComparisons)"
    }

    static func excess(of key: OpaquePointer) -> String? {
        let bits = EVP_PKEY_get_bits(key)
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_DSA: return "sends a certificate with a DSA key of \(bits) bits, which no authority uses"
        case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS:
            guard bits <= HandshakeCost.maximumModulus else {
                return "sends a certificate with an RSA key of \(bits) bits, and the limit is \(HandshakeCost.maximumModulus)"
            }
            var exponent: OpaquePointer?
            defer { BN_free(exponent) }
            guard EVP_PKEY_get_bn_param(key, "e", &exponent) == 1, BN_num_bits(exponent) > HandshakeCost.maximumExponent else {
                return nil
            }
            return "sends a certificate with an RSA key whose exponent has \(BN_num_bits(exponent)) bits, "
                + "and the limit is \(HandshakeCost.maximumExponent)"
        default: return nil
        }
    }

    /// Returns the number of names in a certificate that constraints of its issuers are compared with.
    private static func nameCount(of certificate: OpaquePointer) -> Int {
        // The subject itself counts as a name, and its fields may be e-mail addresses and host names.
        var count = 1 + Int(max(0, X509_NAME_entry_count(X509_get_subject_name(certificate))))
        guard X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0,
            let names = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil).map({ OpaquePointer($0) })
        else { return count }
        count += Int(max(0, OPENSSL_sk_num(names)))
        GENERAL_NAMES_free(names)
        return count
    }

    private static func constraintCount(of certificate: OpaquePointer) -> Int {
        guard X509_get_ext_by_NID(certificate, NID_name_constraints, -1) >= 0,
            let decoded = X509_get_ext_d2i(certificate, NID_name_constraints, nil, nil)
        else { return 0 }
        let constraints = decoded.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
        defer { NAME_CONSTRAINTS_free(constraints) }
        return [constraints.pointee.permittedSubtrees, constraints.pointee.excludedSubtrees]
            .reduce(0) { $0 + Int(max(0, OPENSSL_sk_num($1))) }
    }
}
