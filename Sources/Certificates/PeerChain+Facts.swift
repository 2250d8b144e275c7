internal import COpenSSL
internal import Glibc

/// The facts of a chain that a verdict on the server needs, whether the chain is valid or not.
extension PeerChain {
    /// The errors of a verification, each code once for a depth.
    struct ErrorCollection {
        /// The maximum number of errors. A chain of a thousand invalid certificates needs no more to be understood.
        static let maximumCount = 32
        private(set) var errors: [ChainError] = []
        /// Whether the verification ends when the chain is known to lead to no authority. The server is not trusted then, whatever the
        /// signatures in its chain are, and anybody can make them costly.
        var endsWithoutAuthority = true

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

        /// Whether the verification ends with an error.
        func ends(with code: Int32) -> Bool { endsWithoutAuthority && Self.leadsToNone(code) }

        /// Whether an error means that the chain leads to no authority.
        static func leadsToNone(_ code: Int32) -> Bool { ChainError.isUnknownAuthority(code) || code == ChainError.tooLong }
    }

    /// The result of a verification that does not end at its first error, unless the chain leads to no authority.
    private struct Verification {
        /// Whether there is a valid chain.
        var isValid = false
        var errors: [ChainError]
        /// The valid chain, if it is asked for.
        var chain: [X509Certificate] = []
        /// The earliest end of the validity of the chain up to the authority; `nil` if it leads to none.
        var notAfter: Int64?
        /// The position of the last certificate of the chain, which is trusted itself unless an error says otherwise.
        var anchorDepth: Int32 = -1
        /// Whether that certificate has issued itself, so that no other one could revoke it.
        var endsWithRoot = true
        /// The number of certificates that the peer has sent. Those behind them are from the store.
        var untrustedCount: Int32 = 0
    }

    /// Builds the chain from the peer's own certificate to one of the authorities, and verifies it with dates and revocation.
    /// `checksRevocation`: whether revocation lists are checked.
    package func verify(against authorities: TrustStore, checksRevocation: Bool = true) -> ChainVerification {
        let disabledFlags = checksRevocation ? 0 : UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        let flags = authorities.flags & ~disabledFlags
        let verification = verification(against: authorities, flags: flags, at: nil, returnsChain: true)
        guard !verification.isValid else {
            return ChainVerification(chain: verification.chain, notAfter: verification.notAfter)
        }
        // A failure without an error must never count as success.
        var errors = verification.errors.isEmpty ? [.unspecified] : verification.errors
        if authorities.isEmpty { errors[0] = errors[0].appending(", and the policy has no authority") }
        return ChainVerification(errors: errors, notAfter: verification.notAfter)
    }

    /// Verifies the chain with dates and revocation, and does not end at the first error.
    ///
    /// - Parameters:
    ///   - authorities: the trusted authorities.
    ///   - time: the time for which dates are judged, in seconds since 1970.
    /// - Returns: All errors, in the order in which OpenSSL finds them. If no authority is found, only those of names and dates follow.
    private func verifyCompletely(against authorities: TrustStore, at time: Int64?) -> ChainVerification {
        let verification = verification(against: authorities, flags: authorities.flags, at: time)
        return ChainVerification(
            errors: errors(of: verification, against: authorities, at: time), notAfter: verification.notAfter)
    }

    private func errors(of verification: Verification, against authorities: TrustStore, at time: Int64?) -> [ChainError] {
        let anchorDepth = verification.anchorDepth
        guard authorities.checksIssuers, !verification.endsWithRoot, anchorDepth >= 0,
            !verification.errors.contains(where: { ErrorCollection.leadsToNone($0.code) })
        else { return verification.errors }
        // The chain ends with a certificate that is trusted itself. Its issuer, if that is trusted too, may have revoked it.
        let flags = authorities.flags & ~UInt(X509_V_FLAG_PARTIAL_CHAIN)
        let longer = self.verification(against: authorities, flags: flags, at: time, endsWithoutAuthority: false)
        let isTrusted = longer.untrustedCount <= anchorDepth + 1 || !longer.errors.contains(where: \.isUnknownAuthority)
        guard longer.anchorDepth > anchorDepth, isTrusted else { return verification.errors }
        let isRevocation = { (error: ChainError) in
            (error.isOfRevocationList || error.code == ChainError.revoked) && error.depth >= anchorDepth
        }
        return verification.errors.filter { !isRevocation($0) } + longer.errors.filter(isRevocation)
    }

    /// Builds and verifies the chain, and calls `body` with the issuer of the peer's own certificate.
    ///
    /// The chain leads to a trusted authority, also if it has other errors, such as those of dates. `body` is not called if it leads to none,
    /// or if the own certificate is trusted itself and has another issuer.
    func withVerifiedIssuer<Result>(
        against authorities: TrustStore, at time: Int64, _ body: (_ issuer: OpaquePointer) -> Result
    ) -> Result? {
        let flags = authorities.flags & ~UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        var result: Result?
        _ = verification(against: authorities, flags: flags, at: time) { chain in
            let isSelfIssued = own.map { X509_NAME_cmp(X509_get_subject_name($0), X509_get_issuer_name($0)) == 0 } ?? false
            guard let issuer = OPENSSL_sk_value(chain, isSelfIssued ? 0 : 1) else { return }
            result = body(OpaquePointer(issuer))
        }
        return result
    }

    /// Verifies the chain. `inspect` is called with it (a STACK_OF(X509), own certificate first) if it leads to an authority.
    private func verification(
        against authorities: TrustStore, flags: UInt, at time: Int64?, returnsChain: Bool = false,
        endsWithoutAuthority: Bool = true, inspect: (_ chain: OpaquePointer?) -> Void = { _ in }
    ) -> Verification {
        var collection = ErrorCollection()
        collection.endsWithoutAuthority = endsWithoutAuthority
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
        let leadsToAuthority = !collection.errors.contains { ErrorCollection.leadsToNone($0.code) }
        if leadsToAuthority { inspect(chain) }
        if !leadsToAuthority, endsWithoutAuthority { Self.collectDates(of: chain, at: time, in: &collection) }
        let anchorDepth = OPENSSL_sk_num(chain) - 1
        let anchor = OPENSSL_sk_value(chain, anchorDepth).map { OpaquePointer($0) }
        let hasSucceeded = isValid && collection.errors.isEmpty
        return Verification(
            isValid: hasSucceeded,
            errors: ChainError.proven(
                collection.errors, requiresAllLists: authorities.requiresAllLists, anchorDepth: anchorDepth),
            chain: hasSucceeded && returnsChain ? CertificateDecoding.certificates(of: chain) : [],
            notAfter: leadsToAuthority ? Self.earliestNotAfter(of: chain) : nil, anchorDepth: anchorDepth,
            endsWithRoot: anchor.map { X509_NAME_cmp(X509_get_subject_name($0), X509_get_issuer_name($0)) == 0 } ?? true,
            untrustedCount: X509_STORE_CTX_get_num_untrusted(context))
    }

    /// Adds the errors of dates that OpenSSL has not looked for, in its order: from the authority down to the peer's own certificate.
    private static func collectDates(of chain: OpaquePointer?, at time: Int64?, in collection: inout ErrorCollection) {
        let now = time ?? Int64(Glibc.time(nil))
        for depth in (0..<max(0, OPENSSL_sk_num(chain))).reversed() {
            guard let certificate = OPENSSL_sk_value(chain, depth).map({ OpaquePointer($0) }) else { continue }
            if let start = CertificateDecoding.seconds(X509_get0_notBefore(certificate)), start > now {
                collection.insert(X509_V_ERR_CERT_NOT_YET_VALID, depth: depth)
            }
            // In the second of its end, a certificate is not valid any more.
            if let end = CertificateDecoding.seconds(X509_get0_notAfter(certificate)), end <= now {
                collection.insert(X509_V_ERR_CERT_HAS_EXPIRED, depth: depth)
            }
        }
    }

    /// Returns the facts of the certificates. They depend on the certificates, on the parameters, and on nothing else if the time is
    /// given.
    func facts(for serverName: String, authorities: TrustStore?, at time: Int64? = nil) -> TLSChainFacts {
        if let excess {
            var facts = facts(for: serverName, nil)
            facts.excess = excess
            return facts
        }
        return facts(for: serverName, authorities.map { verifyCompletely(against: $0, at: time) })
    }

    /// Returns the facts of the certificates with the result of a verification; `nil` if the chain was not verified. `checksName`: whether
    /// another name is an error.
    func facts(for serverName: String, _ verification: ChainVerification?, checksName: Bool = true) -> TLSChainFacts {
        let matches = checksName ? isFor(host: serverName) : nil
        var errors = verification?.errors ?? []
        if matches == false { errors.append(nameError(for: serverName)) }
        return TLSChainFacts(
            certificate: ownFacts, length: count, notAfter: verification?.notAfter ?? Self.earliestNotAfter(of: sent),
            errors: errors, nameMatches: matches)
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

    /// Returns the earliest end of the validity of certificates, a STACK_OF(X509).
    private static func earliestNotAfter(of certificates: OpaquePointer?) -> Int64? {
        (0..<OPENSSL_sk_num(certificates).clamped).compactMap { index in
            OPENSSL_sk_value(certificates, index).flatMap { CertificateDecoding.seconds(X509_get0_notAfter(OpaquePointer($0))) }
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
