import COpenSSL
import Certificates
import Glibc
import Reachability

/// A new self-signed certificate and its key (P-256).
///
/// A client whose only trusted root is ``certificate`` accepts the server; every other client refuses it.
public struct SelfSignedCertificate: Hashable, Sendable {
    /// The certificate, as PEM text.
    public let certificate: String
    /// The key, as PEM text (PKCS#8).
    public let privateKey: String

    /// Creates a certificate and its key.
    ///
    /// - Parameters:
    ///   - names: the subject's alternative names: host names and numeric addresses. The first one is the common name too.
    ///   - validFrom: the beginning of the validity, in seconds from now; by default a day ago.
    ///   - validUntil: the end of the validity, in seconds from now; by default in ten days, negative for an expired certificate.
    /// - Throws: ``TestServerError``.
    public init(names: [String] = ["localhost", "127.0.0.1", "::1"], validFrom: Int = -86400, validUntil: Int = 864_000) throws {
        OpenSSL.prepare()
        let key = try SelfSignedCertificate.generateKey()
        defer { EVP_PKEY_free(key) }
        guard let pointer = X509_new() else { throw TestServerError(openSSL: "X509_new") }
        defer { X509_free(pointer) }
        X509_set_version(pointer, 2)
        // Serial numbers of one issuer must differ (RFC 5280 section 4.1.2.2).
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(pointer), UInt64.random(in: 1..<UInt64.max >> 1))
        X509_gmtime_adj(X509_getm_notBefore(pointer), validFrom)
        X509_gmtime_adj(X509_getm_notAfter(pointer), validUntil)
        let subject = X509_get_subject_name(pointer)
        let commonName = Array((names.first ?? "test").utf8)
        // MBSTRING_UTF8, a cast in C.
        X509_NAME_add_entry_by_NID(subject, NID_commonName, 0x1000, commonName, Int32(commonName.count), -1, 0)
        X509_set_issuer_name(pointer, subject)
        X509_set_pubkey(pointer, key)
        let alternatives = names.map { IPAddress($0) != nil ? "IP:\($0)" : "DNS:\($0)" }
        var extensions = [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,digitalSignature,keyCertSign")]
        if !alternatives.isEmpty { extensions.append((NID_subject_alt_name, alternatives.joined(separator: ","))) }
        for (kind, value) in extensions {
            guard let one = X509V3_EXT_conf_nid(nil, nil, kind, value) else { throw TestServerError(openSSL: value) }
            X509_add_ext(pointer, one, -1)
            X509_EXTENSION_free(one)
        }
        guard X509_sign(pointer, key, EVP_sha256()) > 0 else { throw TestServerError(openSSL: "X509_sign") }
        certificate = try SelfSignedCertificate.text { PEM_write_bio_X509($0, pointer) }
        privateKey = try SelfSignedCertificate.text { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    /// The TLS settings of a server with this certificate.
    public var serverTLS: ServerTLS {
        ServerTLS(certificateChain: .text(certificate), privateKey: .text(privateKey))
    }

    private static func generateKey() throws -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw TestServerError(openSSL: "EVP_PKEY_generate") }
        return key
    }

    private static func text(_ write: (OpaquePointer) -> Int32) throws -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { throw TestServerError(openSSL: "BIO_new") }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { throw TestServerError(openSSL: "writing PEM") }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(bio)))
        BIO_read(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }
}
