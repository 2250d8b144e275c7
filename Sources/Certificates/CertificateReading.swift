internal import COpenSSL
internal import Glibc

/// Readings of OpenSSL's X509 for the facts of a handshake.
enum CertificateReading {
    /// Returns the facts of the first certificate of a STACK_OF(X509), and of the chain; `nil` for an empty one.
    static func certificate(of stack: OpaquePointer?) -> TLSHandshakeFacts.Certificate? {
        let chain = (0..<max(0, OPENSSL_sk_num(stack))).compactMap { OPENSSL_sk_value(stack, $0).map { OpaquePointer($0) } }
        guard let own = chain.first else { return nil }
        let names = names(of: own)
        let ends = chain.compactMap { seconds(X509_get0_notAfter($0)) }
        let notAfter = seconds(X509_get0_notAfter(own)) ?? 0
        return TLSHandshakeFacts.Certificate(
            subject: CertificateDecoding.line(of: X509_get_subject_name(own)),
            issuer: CertificateDecoding.line(of: X509_get_issuer_name(own)),
            names: Array(names.prefix(TLSHandshakeFacts.Certificate.nameLimit)), nameCount: names.count,
            notBefore: seconds(X509_get0_notBefore(own)) ?? 0, notAfter: notAfter, sha256: sha256(of: own),
            chainLength: chain.count, chainNotAfter: ends.min() ?? notAfter)
    }

    /// Returns the seconds since 1970; `nil` for a time that is not valid.
    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        var calendar = tm()
        guard let time, ASN1_TIME_to_tm(time, &calendar) == 1 else { return nil }
        return Int64(timegm(&calendar))
    }

    private static func sha256(of x509: OpaquePointer) -> String {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(x509, EVP_sha256(), &digest, &count) == 1 else { return "" }
        return digest.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Returns the DNS names and the addresses among the subject alternative names (RFC 5280 section 4.2.1.6).
    private static func names(of x509: OpaquePointer) -> [String] {
        guard let held = X509_get_ext_d2i(x509, NID_subject_alt_name, nil, nil) else { return [] }
        let stack = OpaquePointer(held)
        defer { netwatch_general_names_free(held) }
        return (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
            guard let value = OPENSSL_sk_value(stack, index) else { return nil }
            var kind: Int32 = 0
            var count: Int32 = 0
            guard let start = netwatch_general_name(value, &kind, &count) else { return nil }
            let bytes = UnsafeBufferPointer(start: start, count: Int(max(0, count)))
            return kind == GEN_DNS ? String(decoding: bytes, as: UTF8.self) : address(Array(bytes))
        }
    }

    private static func address(_ bytes: [UInt8]) -> String? {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil
        else { return nil }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
