internal import COpenSSL
package import FoundationEssentials

/// Conversions between bytes, ``X509Certificate`` and OpenSSL's X509.
package enum CertificateDecoding {
    /// The maximum number of certificates or lists that are read from one text.
    static let maximumCount = 10_000

    /// Decodes one certificate in DER, or all certificates of a PEM text.
    ///
    /// - Throws: ``CertificateError`` if there is none.
    package static func certificates(in data: Data, named name: String) throws(CertificateError) -> [X509Certificate] {
        try decoded(data, named: name, kind: "certificate", pem: PEM_read_bio_X509, der: d2i_X509, free: X509_free) {
            certificate($0)
        }
    }

    /// Decodes one revocation list in DER, or all lists of a PEM text. Returns each list as DER.
    ///
    /// - Throws: ``CertificateError`` if there is none.
    package static func revocationLists(in data: Data, named name: String) throws(CertificateError) -> [Data] {
        try decoded(
            data, named: name, kind: "revocation list", pem: PEM_read_bio_X509_CRL, der: d2i_X509_CRL, free: X509_CRL_free
        ) { list in encoding { i2d_X509_CRL(list, $0) } }
    }

    /// Returns the value of an X509; `nil` if OpenSSL cannot encode it again, or has no SHA-256.
    static func certificate(_ x509: OpaquePointer) -> X509Certificate? {
        guard let der = encoding({ i2d_X509(x509, $0) }),
            let key = encoding({ i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), $0) }), let digest = DigestHasher.sha256(of: key)
        else { return nil }
        return X509Certificate(
            derBytes: der, subject: line(of: X509_get_subject_name(x509)), keyDigest: digest)
    }

    /// Returns the values of a STACK_OF(X509), in its order.
    static func certificates(of stack: OpaquePointer?) -> [X509Certificate] {
        (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
            OPENSSL_sk_value(stack, index).flatMap { certificate(OpaquePointer($0)) }
        }
    }

    /// Creates an X509, which the caller frees.
    package static func x509(_ certificate: X509Certificate) -> OpaquePointer? {
        certificate.derBytes.withUnsafeBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            return d2i_X509(nil, &next, bytes.count)
        }
    }

    private typealias Passphrase = @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
    private typealias ReadPEM = (
        OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?, Passphrase?, UnsafeMutableRawPointer?
    ) -> OpaquePointer?
    private typealias ReadDER = (
        UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int
    ) -> OpaquePointer?

    private static func decoded<Value>(
        _ data: Data, named name: String, kind: String, pem: ReadPEM, der: ReadDER, free: (OpaquePointer?) -> Void,
        value: (OpaquePointer) -> Value?
    ) throws(CertificateError) -> [Value] {
        try OpenSSLErrors.contained { () throws(CertificateError) in
            func unparsable(_ detail: String) -> CertificateError {
                CertificateError.invalid("\(name) holds no \(kind) that can be parsed: \(detail)")
            }
            guard data.firstRange(of: Array("-----BEGIN ".utf8)) != nil else {
                let one = data.withUnsafeBytes { bytes in
                    let start = bytes.bindMemory(to: UInt8.self).baseAddress
                    var next = start
                    let object = der(nil, &next, bytes.count)
                    // Data with bytes after the object is not a valid encoding.
                    guard object == nil || next == start.map({ $0 + bytes.count }) else {
                        free(object)
                        return nil as OpaquePointer?
                    }
                    return object
                }
                guard let one else { throw unparsable("neither PEM nor DER") }
                defer { free(one) }
                guard let value = value(one) else { throw unparsable(newestReason) }
                return [value]
            }
            let values = try withBIO(data) { (bio) throws(CertificateError) in
                var values: [Value] = []
                while values.count < maximumCount {
                    ERR_set_mark()
                    guard let object = pem(bio, nil, TLSCallbacks.passphrase, nil) else {
                        let reason = ERR_GET_REASON(ERR_peek_last_error())
                        let text = newestReason
                        ERR_pop_to_mark()
                        // OpenSSL reports the end of the text as an error.
                        guard reason != PEM_R_NO_START_LINE else { break }
                        guard !values.isEmpty else { throw unparsable(text) }
                        throw CertificateError.invalid("\(name): \(kind) \(values.count + 1) cannot be parsed: \(text)")
                    }
                    ERR_pop_to_mark()
                    defer { free(object) }
                    guard let value = value(object) else { throw unparsable("it cannot be encoded") }
                    values.append(value)
                }
                return values
            }
            guard !values.isEmpty else { throw unparsable("it has none") }
            return values
        }
    }

    /// The reason of OpenSSL's newest error; that of its decoder names only the decoder.
    private static var newestReason: String {
        let text = OpenSSLErrors.newest
        return text == "ASN1 lib" ? "it is not valid DER" : text
    }

    /// Runs `body` with a BIO that reads `data`.
    static func withBIO<Result, Failure: Error>(
        _ data: Data, _ body: (OpaquePointer?) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // Copied, because `withUnsafeBytes` cannot rethrow a typed error. PEM_read_bio_… treat a NULL BIO as an empty one.
        let bio = BIO_new(BIO_s_mem())
        data.withUnsafeBytes { _ = BIO_write(bio, $0.baseAddress, Int32(clamping: $0.count)) }
        defer { BIO_free(bio) }
        return try body(bio)
    }

    /// Returns the output of an i2d_… function.
    static func encoding(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> Data? {
        let count = Int(encode(nil))
        guard count > 0 else { return nil }
        var data = Data(count: count)
        let written = data.withUnsafeMutableBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            return Int(encode(&next))
        }
        return written == count ? data : nil
    }

    /// Returns the seconds since 1970; `nil` for a time that cannot be decoded.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    /// Returns the names in a STACK_OF(X509_NAME), in its order.
    package static func names(of stack: OpaquePointer?) -> [String] {
        (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
            OPENSSL_sk_value(stack, index).map { line(of: OpaquePointer($0)) }
        }
    }

    /// Returns a name on one line (RFC 2253). A longer one is cut at `maximumBytes`.
    static func line(of name: OpaquePointer?, maximumBytes: Int = .max) -> String {
        guard let name, let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard netwatch_print_name(bio, name) >= 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: min(BIO_ctrl_pending(bio), maximumBytes))
        let count = BIO_read(bio, &bytes, Int32(clamping: bytes.count))
        return String(decoding: bytes.prefix(Int(max(0, count))), as: UTF8.self)
    }
}
