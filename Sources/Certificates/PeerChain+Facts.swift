internal import COpenSSL
internal import Glibc

/// The facts of a chain that a verdict on the server needs, whether the chain is valid or not.
extension PeerChain {
    /// The errors of a verification, each code once for a depth.
    struct ErrorCollection {
        /// The maximum number of errors. A chain of a thousand invalid certificates needs no more to be understood.
        static let maximumCount = 32
        private(set) var errors: [ChainError] = []

        mutating func insert(_ code: Int32, depth: Int32, of certificate: OpaquePointer? = nil) {
            guard errors.count < Self.maximumCount, !errors.contains(where: { $0.code == code && $0.depth == depth }) else {
                return
            }
            var error = ChainError(code: code, text: PeerChain.text(ofError: code), depth: depth)
            if depth > 0, let certificate, error.isOfRevocationList || code == ChainError.revoked {
                let subject = CertificateDecoding.line(of: X509_get_subject_name(certificate), maximumBytes: 1024)
                error = ChainError(code: code, text: error.text, depth: depth, subject: subject)
            }
            errors.append(error)
        }
    }

    /// The result of a verification that does not end at its first error.
    private struct Verification {
        var errors: [ChainError]
        /// The position of the last certificate of the chain, which is trusted itself unless an error says otherwise.
        var anchorDepth: Int32 = -1
        /// Whether that certificate has issued itself, so that no other one could revoke it.
        var endsWithRoot = true
        /// The number of certificates that the peer has sent. Those behind them are from the store.
        var untrustedCount: Int32 = 0
    }

    /// Verifies the chain with dates and revocation, and does not end at the first error.
    ///
    /// - Parameters:
    ///   - authorities: the trusted authorities.
    ///   - time: the time for which dates are judged, in seconds since 1970; `nil` for the present.
    /// - Returns: All errors, in the order in which OpenSSL finds them.
    func verificationErrors(against authorities: TrustStore, at time: Int64? = nil) -> [ChainError] {
        let verification = verification(against: authorities, flags: authorities.flags, at: time)
        let anchorDepth = verification.anchorDepth
        guard authorities.checksIssuers, !verification.endsWithRoot, anchorDepth >= 0 else { return verification.errors }
        // The chain ends with a certificate that is trusted itself. Its issuer, if that is trusted too, may have revoked it.
        let flags = authorities.flags & ~UInt(X509_V_FLAG_PARTIAL_CHAIN)
        let longer = self.verification(against: authorities, flags: flags, at: time)
        let isTrusted = longer.untrustedCount <= anchorDepth + 1 || !longer.errors.contains(where: \.isUnknownAuthority)
        guard longer.anchorDepth > anchorDepth, isTrusted else { return verification.errors }
        let isRevocation = { (error: ChainError) in
            (error.isOfRevocationList || error.code == ChainError.revoked) && error.depth >= anchorDepth
        }
        return verification.errors.filter { !isRevocation($0) } + longer.errors.filter(isRevocation)
    }

    private func verification(against authorities: TrustStore, flags: UInt, at time: Int64?) -> Verification {
        var collection = ErrorCollection()
        guard let context = X509_STORE_CTX_new(), X509_STORE_CTX_init(context, authorities.store, own, sent) == 1 else {
            collection.insert(X509_V_ERR_OUT_OF_MEM, depth: 0)
            return Verification(errors: collection.errors)
        }
        defer { X509_STORE_CTX_free(context) }
        configure(context, flags: flags)
        if let time { X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context), Int(time)) }
        X509_STORE_CTX_set_verify_cb(context, TLSCallbacks.chainError)
        let isValid = withUnsafeMutablePointer(to: &collection) { pointer in
            // Index 0 is reserved for applications (X509_STORE_CTX_set_app_data, a macro).
            guard X509_STORE_CTX_set_ex_data(context, 0, pointer) == 1 else { return false }
            return X509_verify_cert(context) == 1
        }
        // A failure without an error is an internal error of OpenSSL. It must never count as success.
        if !isValid, collection.errors.isEmpty { collection.insert(X509_V_ERR_UNSPECIFIED, depth: 0) }
        let chain = X509_STORE_CTX_get0_chain(context)
        let anchorDepth = OPENSSL_sk_num(chain) - 1
        let anchor = OPENSSL_sk_value(chain, anchorDepth).map { OpaquePointer($0) }
        return Verification(
            errors: ChainError.proven(
                collection.errors, requiresAllLists: authorities.requiresAllLists, anchorDepth: anchorDepth),
            anchorDepth: anchorDepth,
            endsWithRoot: anchor.map { X509_NAME_cmp(X509_get_subject_name($0), X509_get_issuer_name($0)) == 0 } ?? true,
            untrustedCount: X509_STORE_CTX_get_num_untrusted(context))
    }

    /// Adds the facts of the certificates to those of a handshake.
    ///
    /// - Parameters:
    ///   - facts: the facts; their ``TLSHandshakeFacts/serverName`` is the name that the certificate must have.
    ///   - authorities: the trusted authorities; `nil` if the chain is not verified.
    ///   - checksName: whether another name is an error.
    package func describe(in facts: inout TLSHandshakeFacts, authorities: TrustStore?, checksName: Bool = true) {
        facts.chain = self.facts(for: facts.serverName, authorities: authorities, checksName: checksName)
    }

    /// Returns the facts of the certificates. They depend on the certificates, on the parameters, and on nothing else if the time is
    /// given.
    func facts(
        for serverName: String, authorities: TrustStore?, checksName: Bool = true, at time: Int64? = nil
    ) -> TLSChainFacts {
        let matches = checksName ? isFor(host: serverName) : nil
        var errors = authorities.map { verificationErrors(against: $0, at: time) } ?? []
        if matches == false { errors.append(nameError(for: serverName)) }
        return TLSChainFacts(
            certificate: ownFacts, length: count, notAfter: earliestNotAfter, errors: errors, nameMatches: matches)
    }

    /// Returns the error of a certificate that does not name the host.
    func nameError(for host: String) -> ChainError {
        let code = Self.isAddress(host) ? ChainError.addressMismatch : ChainError.hostnameMismatch
        return ChainError(code: code, text: Self.text(ofError: code))
    }

    static func text(ofError code: Int32) -> String {
        X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
    }

    /// Returns whether a host is a numeric address.
    static func isAddress(_ host: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
    }

    /// The number of certificates that the peer sent.
    var count: Int { Int(max(0, OPENSSL_sk_num(sent))) }

    /// The earliest end of the validity of all certificates that the peer sent.
    var earliestNotAfter: Int64? {
        (0..<OPENSSL_sk_num(sent).clamped).compactMap { index in
            OPENSSL_sk_value(sent, index).flatMap { CertificateDecoding.seconds(X509_get0_notAfter(OpaquePointer($0))) }
        }.min()
    }

    /// The facts of the peer's own certificate.
    var ownFacts: TLSCertificateFacts? {
        guard let own else { return nil }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var digestCount: UInt32 = 0
        guard X509_digest(own, EVP_sha256(), &digest, &digestCount) == 1 else { return nil }
        let (names, nameCount) = Self.names(of: own)
        return TLSCertificateFacts(
            subject: CertificateDecoding.line(of: X509_get_subject_name(own), maximumBytes: 1024),
            issuer: CertificateDecoding.line(of: X509_get_issuer_name(own), maximumBytes: 1024),
            isSelfIssued: X509_NAME_cmp(X509_get_subject_name(own), X509_get_issuer_name(own)) == 0,
            names: names, nameCount: nameCount, notBefore: CertificateDecoding.seconds(X509_get0_notBefore(own)),
            notAfter: CertificateDecoding.seconds(X509_get0_notAfter(own)),
            sha256: Self.hexadecimal(digest.prefix(Int(digestCount))),
            serialNumber: Self.serialNumber(of: own))
    }

    /// Returns the serial number, at most 64 bytes of it.
    private static func serialNumber(of certificate: OpaquePointer) -> String {
        guard let number = X509_get0_serialNumber(certificate) else { return "" }
        let count = Int(max(0, ASN1_STRING_length(number)))
        return hexadecimal(UnsafeBufferPointer(start: ASN1_STRING_get0_data(number), count: count).prefix(64))
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Returns the first host names and addresses among the subject's alternative names, and the number of all of them.
    private static func names(of certificate: OpaquePointer) -> ([String], Int) {
        guard let decoded = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return ([], 0) }
        let stack = OpaquePointer(decoded)
        defer { GENERAL_NAMES_free(stack) }
        var names: [String] = []
        var count = 0
        for index in 0..<OPENSSL_sk_num(stack).clamped {
            guard let entry = OPENSSL_sk_value(stack, index) else { continue }
            var type: Int32 = -1
            guard
                let value = GENERAL_NAME_get0_value(entry.assumingMemoryBound(to: GENERAL_NAME.self), &type),
                type == GEN_DNS || type == GEN_IPADD
            else { continue }
            count += 1
            guard names.count < TLSCertificateFacts.maximumNames else { continue }
            let string = value.assumingMemoryBound(to: ASN1_STRING.self)
            let bytes = UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(string), count: Int(max(0, ASN1_STRING_length(string))))
            // No host name is longer (RFC 1035 section 2.3.4).
            names.append(type == GEN_DNS ? String(decoding: bytes.prefix(255), as: UTF8.self) : address(bytes))
        }
        return (names, count)
    }

    /// Returns an address as text; the bytes in hexadecimal if they are none.
    private static func address(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let family = bytes.count == 4 ? AF_INET : bytes.count == 16 ? AF_INET6 : AF_UNSPEC
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard family != AF_UNSPEC, inet_ntop(family, bytes.baseAddress, &text, socklen_t(text.count)) != nil else {
            return hexadecimal(bytes.prefix(64))
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension Int32 {
    /// The number, or 0 for OpenSSL's -1 of a stack that does not exist.
    fileprivate var clamped: Int32 { Swift.max(0, self) }
}
