internal import COpenSSL
internal import Certificates
package import FoundationEssentials

/// A certificate with its key, created in memory.
package final class MemoryCertificate {
    /// The algorithm of a key.
    package enum Algorithm: CaseIterable, Sendable {
        case p256
        case p384
        case rsa2048
        case ed25519

        fileprivate var identifier: Int32 {
            switch self {
            case .p256, .p384: EVP_PKEY_EC
            case .rsa2048: EVP_PKEY_RSA
            case .ed25519: EVP_PKEY_ED25519
            }
        }

        /// Sets the size of a key to create. - Returns: Whether OpenSSL accepts it.
        fileprivate func setSize(on context: OpaquePointer?) -> Bool {
            switch self {
            case .p256: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
            case .p384: EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp384r1) == 1
            case .rsa2048: EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1
            case .ed25519: true
            }
        }
    }

    /// OpenSSL cannot create a certificate or a list.
    package struct Failure: Error {
        package init() {}
    }

    /// The certificate (X509).
    package let x509: OpaquePointer
    /// The key (EVP_PKEY).
    package let key: OpaquePointer

    /// Creates a certificate and its key.
    ///
    /// - Parameters:
    ///   - name: the common name.
    ///   - issuer: the authority that signs; without one, the certificate is self-signed.
    ///   - names: the alternative names, such as `DNS:a.test` and `IP:127.0.0.1`.
    ///   - isAuthority: whether the certificate may sign others.
    ///   - days: the validity, in days from `now`.
    ///   - algorithm: the algorithm of the key.
    ///   - publicKey: the key that the certificate states instead of its own; its private key is not known.
    ///   - constraints: constraints on names, such as `permitted;DNS:a.test`.
    ///   - isResponder: whether the certificate may sign OCSP responses for its issuer.
    ///   - now: the time of creation, in seconds since 1970.
    /// - Throws: ``Failure``.
    package init(
        _ name: String, issuer: MemoryCertificate? = nil, names: [String] = [], isAuthority: Bool = false,
        days: ClosedRange<Int> = -1...100, algorithm: Algorithm = .p256, publicKey: CostlyKey? = nil, constraints: [String] = [],
        isResponder: Bool = false, at now: Int = Int(Date().timeIntervalSince1970)
    ) throws {
        OpenSSL.prepare()
        let context = EVP_PKEY_CTX_new_id(algorithm.identifier, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, algorithm.setSize(on: context),
            EVP_PKEY_generate(context, &key) == 1, let key, let x509 = X509_new()
        else { throw Failure() }
        self.key = key
        self.x509 = x509
        X509_set_version(x509, 2)
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), UInt64.random(in: 1 << 56..<1 << 60))
        // One reading of the clock for both ends, so that the length of the validity is exact.
        var now = now
        X509_time_adj(X509_getm_notBefore(x509), days.lowerBound * 86_400, &now)
        // In messages, the number of days stays the same for half a day after `now`.
        X509_time_adj(X509_getm_notAfter(x509), days.upperBound * 86_400 + 43_200, &now)
        let subject = X509_get_subject_name(x509)
        // MBSTRING_UTF8, a cast in C.
        X509_NAME_add_entry_by_NID(subject, NID_commonName, 0x1000, name, -1, -1, 0)
        X509_set_issuer_name(x509, X509_get_subject_name(issuer?.x509 ?? x509))
        let stated = publicKey.flatMap { $0.decoded() }
        defer { EVP_PKEY_free(stated) }
        guard publicKey == nil || stated != nil else { throw Failure() }
        X509_set_pubkey(x509, stated ?? key)
        var extensions = [
            (NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "CA:FALSE"),
            (NID_key_usage, isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature"),
        ]
        if !names.isEmpty { extensions.append((NID_subject_alt_name, names.joined(separator: ","))) }
        if !constraints.isEmpty { extensions.append((NID_name_constraints, constraints.joined(separator: ","))) }
        if isResponder { extensions.append((NID_ext_key_usage, "OCSPSigning")) }
        for (kind, value) in extensions {
            guard let one = X509V3_EXT_conf_nid(nil, nil, kind, value) else { throw Failure() }
            X509_add_ext(x509, one, -1)
            X509_EXTENSION_free(one)
        }
        let signer = issuer?.key ?? key
        guard X509_sign(x509, signer, Self.digest(for: signer)) > 0 else { throw Failure() }
    }

    /// Returns the digest of signatures with a key; `nil` for Ed25519, which has its own.
    private static func digest(for key: OpaquePointer) -> OpaquePointer? {
        EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
    }

    deinit {
        X509_free(x509)
        EVP_PKEY_free(key)
    }

    private static func der(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> Data {
        var start: UnsafeMutablePointer<UInt8>?
        let count = Int(max(0, encode(&start)))
        defer { CRYPTO_free(start, nil, 0) }
        return Data(UnsafeBufferPointer(start: start, count: count))
    }

    /// The certificate in DER.
    package var derBytes: Data { Self.der { i2d_X509(x509, $0) } }

    /// The certificate in PEM.
    package var pem: String {
        get throws { try Self.text { PEM_write_bio_X509($0, x509) } }
    }

    /// The key in PEM (PKCS#8), not encrypted.
    package var keyPEM: String {
        get throws { try Self.text { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) } }
    }

    private static func text(_ write: (OpaquePointer) -> Int32) throws -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { throw Failure() }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { throw Failure() }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(bio)))
        BIO_read(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The status of a certificate in an OCSP response.
    package enum OCSPStatus: Sendable {
        case good, unknown
        /// Revoked two days before the creation of the response, for the reason keyCompromise.
        case revoked

        fileprivate var number: Int32 {
            switch self {
            case .good: V_OCSP_CERTSTATUS_GOOD
            case .unknown: V_OCSP_CERTSTATUS_UNKNOWN
            case .revoked: V_OCSP_CERTSTATUS_REVOKED
            }
        }
    }

    /// An OCSP response that this certificate's key signs, in DER.
    ///
    /// - Parameters:
    ///   - status: the status of the certificate.
    ///   - certificate: the certificate.
    ///   - issuer: the issuer of the certificate. The response has this certificate unless it is the issuer.
    ///   - hours: the validity, in hours from `now`.
    ///   - hasNextUpdate: whether the response states the end of its validity.
    ///   - usesSHA256: whether the certificate is identified by SHA-256, and not by SHA-1.
    ///   - isWeak: whether the signature is over SHA-1.
    ///   - sent: the certificate in the response, if it is not the signer's own.
    ///   - now: the time of creation, in seconds since 1970.
    /// - Returns: the response.
    /// - Throws: ``Failure``.
    package func response(
        _ status: OCSPStatus, for certificate: MemoryCertificate, of issuer: MemoryCertificate, hours: ClosedRange<Int> = -1...24,
        hasNextUpdate: Bool = true, usesSHA256: Bool = false, isWeak: Bool = false,
        sending sent: MemoryCertificate? = nil,
        at now: Int = Int(Date().timeIntervalSince1970)
    ) throws -> Data {
        guard let basic = OCSP_BASICRESP_new() else { throw Failure() }
        defer { OCSP_BASICRESP_free(basic) }
        let times = [-48, hours.lowerBound, hours.upperBound].map { hours in ASN1_GENERALIZEDTIME_set(nil, now + hours * 3600) }
        defer { for time in times { ASN1_STRING_free(time) } }
        let digest = usesSHA256 ? EVP_sha256() : EVP_sha1()
        guard let identifier = OCSP_cert_to_id(digest, certificate.x509, issuer.x509) else { throw Failure() }
        defer { OCSP_CERTID_free(identifier) }
        let isRevoked = status.number == V_OCSP_CERTSTATUS_REVOKED
        guard
            OCSP_basic_add1_status(
                basic, identifier, status.number, OCSP_REVOKED_STATUS_KEYCOMPROMISE, isRevoked ? times[0] : nil, times[1],
                hasNextUpdate ? times[2] : nil) != nil,
            OCSP_basic_sign(
                basic, x509, key, isWeak ? EVP_sha1() : Self.digest(for: key), nil,
                x509 == issuer.x509 || sent != nil ? UInt(OCSP_NOCERTS) : 0) == 1,
            sent.map({ OCSP_basic_add1_cert(basic, $0.x509) == 1 }) ?? true,
            let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
        else { throw Failure() }
        defer { OCSP_RESPONSE_free(response) }
        return Self.der { i2d_OCSP_RESPONSE(response, $0) }
    }

    /// An OCSP response that reports an error (tryLater), in DER.
    package static func unsuccessfulResponse() throws -> Data {
        guard let response = OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, nil) else { throw Failure() }
        defer { OCSP_RESPONSE_free(response) }
        return der { i2d_OCSP_RESPONSE(response, $0) }
    }

    /// A revocation list of this authority, in DER.
    ///
    /// - Parameters:
    ///   - revoked: the certificates that the list revokes.
    ///   - hours: the validity, in hours from `now`.
    ///   - now: the time of creation, in seconds since 1970.
    /// - Returns: the list.
    /// - Throws: ``Failure``.
    package func revocationList(
        of revoked: [MemoryCertificate], hours: ClosedRange<Int> = -1...24, at now: Int = Int(Date().timeIntervalSince1970)
    ) throws -> Data {
        var now = now
        guard let list = X509_CRL_new(), let time = X509_time_adj(nil, hours.lowerBound * 3600, &now),
            let next = X509_time_adj(nil, hours.upperBound * 3600, &now)
        else { throw Failure() }
        defer {
            X509_CRL_free(list)
            ASN1_STRING_free(time)
            ASN1_STRING_free(next)
        }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(x509))
        X509_CRL_set1_lastUpdate(list, time)
        X509_CRL_set1_nextUpdate(list, next)
        for certificate in revoked {
            guard let entry = X509_REVOKED_new() else { throw Failure() }
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.x509))
            X509_REVOKED_set_revocationDate(entry, time)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_CRL_sort(list)
        guard X509_CRL_sign(list, key, Self.digest(for: key)) > 0 else { throw Failure() }
        return Self.der { i2d_X509_CRL(list, $0) }
    }
}
