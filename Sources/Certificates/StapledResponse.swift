internal import COpenSSL

/// The facts of the OCSP response that a server staples to a handshake (RFC 6960, RFC 6066 section 8).
///
/// It counts only if the issuer of the server's certificate has signed it, or a responder to which the issuer has delegated that, and only in
/// its time. Everything else comes from the server alone, and proves nothing.
package struct StapledResponse: Hashable, Sendable, Codable, SizedFacts {
    /// What a response says, or the reason for which it is ignored.
    package enum Status: String, Hashable, Sendable, Codable, CaseIterable {
        /// The certificate is not revoked.
        case good
        /// The certificate is revoked.
        case revoked
        /// The responder does not know the certificate.
        case unknown
        /// The response was replaced by a newer one, by its own dates.
        case stale
        /// The time of the response has not come.
        case notYetValid = "not-yet-valid"
        /// Neither the issuer nor a responder of the issuer has signed the response, or the issuer is not known.
        case unverified
        /// The response has no status of the server's certificate.
        case otherCertificate = "other-certificate"
        /// The responder reports an error instead of a status, such as `tryLater`.
        case unsuccessful
        /// The bytes are no response, or more than ``maximumBytes``.
        case malformed
    }

    /// The maximum length. A response with a responder's certificate has about 2,000 bytes.
    package static let maximumBytes = 16_384
    /// The maximum number of certificates whose status one response has.
    static let maximumStatuses: Int32 = 64
    /// The maximum number of certificates in a response that may be the signer's.
    static let maximumSigners: Int32 = 4
    /// The seconds by which clocks of responders and of this machine may differ.
    static let leeway: Int64 = 300
    /// The seconds after which a response without a date of the next one is stale.
    static let defaultValidity: Int64 = 86_400

    package var status: Status
    /// The time for which the status is correct, in seconds since 1970; `nil` if no signature is valid. The other properties are those of a signed
    /// response, too.
    package var thisUpdate: Int64?
    /// The time until which the next response is available, in seconds since 1970; `nil` if the response does not say it.
    package var nextUpdate: Int64?
    /// The subject of the certificate whose key has signed, on one line, at most 1,024 bytes.
    package var signer: String?
    /// The time of the revocation, in seconds since 1970, also if the response is stale; `nil` if the certificate is not revoked.
    package var revokedAt: Int64?
    /// The reason of the revocation by its name in RFC 5280 section 5.3.1, such as `keyCompromise`; `nil` if none is given.
    package var revocationReason: String?

    package init(
        _ status: Status, thisUpdate: Int64? = nil, nextUpdate: Int64? = nil, signer: String? = nil,
        revokedAt: Int64? = nil, revocationReason: String? = nil
    ) {
        (self.status, self.thisUpdate, self.nextUpdate) = (status, thisUpdate, nextUpdate)
        (self.signer, self.revokedAt, self.revocationReason) = (signer, revokedAt, revocationReason)
    }

    var byteCount: Int { 384 + (signer?.utf8.count ?? 0) }

    /// The times in which a signed response counts.
    private var validity: Range<Int64>? {
        guard let thisUpdate else { return nil }
        let end = nextUpdate ?? thisUpdate + Self.defaultValidity
        return thisUpdate - Self.leeway..<end + Self.leeway
    }

    /// Replaces the status of a signed response by that of its dates. Returns the times around `time` in which it stays the same.
    fileprivate mutating func judgeDates(at time: Int64) -> Range<Int64> {
        guard let validity else { return time..<time }
        if time < validity.lowerBound {
            status = .notYetValid
            return .min..<validity.lowerBound
        }
        guard time >= validity.upperBound else { return validity }
        status = .stale
        return validity.upperBound ..< .max
    }
}

extension PeerChain {
    /// Verifies a response that the server staples to its own certificate.
    ///
    /// - Parameters:
    ///   - bytes: the response in DER, as the server has sent it.
    ///   - authorities: the trusted authorities; `nil` if they cannot be loaded.
    ///   - time: the time for which dates are judged, in seconds since 1970.
    /// - Returns: The facts, and the times around `time` in which they stay the same if the chain does; `nil` if they may change.
    func stapledResponse(
        _ bytes: UnsafeRawBufferPointer, authorities: TrustStore?, at time: Int64
    ) -> (response: StapledResponse, validity: Range<Int64>?) {
        guard let response = ReceivedOCSPResponse(bytes) else { return (StapledResponse(.malformed), .min ..< .max) }
        guard response.isSuccessful else { return (StapledResponse(.unsuccessful), .min ..< .max) }
        guard let own, let authorities else { return (StapledResponse(.unverified), nil) }
        let judged = withVerifiedIssuer(against: authorities, at: time) { issuer in
            response.judged(for: own, by: issuer, at: time)
        }
        return judged ?? (StapledResponse(.unverified), nil)
    }
}

/// A decoded response, which releases OpenSSL's objects at its end. Nothing in it is verified at first.
final class ReceivedOCSPResponse {
    private let response: OpaquePointer
    /// The signed part (OCSP_BASICRESP); `nil` if the responder reports an error.
    private let basic: OpaquePointer?

    /// Decodes a response. Bytes after it are an error.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard 1...StapledResponse.maximumBytes ~= bytes.count else { return nil }
        let start = bytes.bindMemory(to: UInt8.self).baseAddress
        var next = start
        guard let response = d2i_OCSP_RESPONSE(nil, &next, bytes.count) else { return nil }
        let isSuccessful = OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL
        let basic = isSuccessful ? OCSP_response_get1_basic(response) : nil
        guard next == start.map({ $0 + bytes.count }), !isSuccessful || basic != nil else {
            OCSP_BASICRESP_free(basic)
            OCSP_RESPONSE_free(response)
            return nil
        }
        (self.response, self.basic) = (response, basic)
    }

    deinit {
        OCSP_BASICRESP_free(basic)
        OCSP_RESPONSE_free(response)
    }

    /// Whether the responder has answered with statuses.
    var isSuccessful: Bool { basic != nil }

    /// Judges the response.
    ///
    /// - Parameters:
    ///   - certificate: the server's own certificate (X509).
    ///   - issuer: the certificate of its issuer in the verified chain (X509).
    ///   - time: the time for which dates are judged, in seconds since 1970.
    /// - Returns: The facts, and the times around `time` in which they stay the same.
    func judged(
        for certificate: OpaquePointer, by issuer: OpaquePointer, at time: Int64
    ) -> (response: StapledResponse, validity: Range<Int64>?) {
        guard let status = newestStatus(of: certificate, issuer) else {
            return (StapledResponse(.otherCertificate), .min ..< .max)
        }
        guard case .success(var facts) = Self.facts(of: status) else { return (StapledResponse(.malformed), .min ..< .max) }
        guard let signer = signer(delegatedBy: issuer, at: time) else { return (StapledResponse(.unverified), nil) }
        facts.signer = CertificateDecoding.line(of: X509_get_subject_name(signer.certificate), maximumBytes: 1024)
        let validity = facts.judgeDates(at: time)
        return (facts, validity.clamped(to: signer.validity))
    }

    // MARK: The status

    private struct Malformed: Error {}

    /// Returns the newest status of a certificate (OCSP_SINGLERESP); `nil` if there is none.
    private func newestStatus(of certificate: OpaquePointer, _ issuer: OpaquePointer) -> OpaquePointer? {
        // Names and keys are hashed once for each algorithm.
        var identifiers: [Int32: OpaquePointer] = [:]
        defer { for identifier in identifiers.values { OCSP_CERTID_free(identifier) } }
        var newest: (status: OpaquePointer, time: Int64)?
        for index in 0..<min(max(0, OCSP_resp_count(basic)), StapledResponse.maximumStatuses) {
            guard let status = OCSP_resp_get0(basic, index), let found = OCSP_SINGLERESP_get0_id(status) else { continue }
            var algorithm: OpaquePointer?
            OCSP_id_get0_info(nil, &algorithm, nil, nil, found)
            let number = OBJ_obj2nid(algorithm)
            guard let digest = Self.digest(number) else { continue }
            if identifiers[number] == nil { identifiers[number] = OCSP_cert_to_id(digest, certificate, issuer) }
            guard let expected = identifiers[number], OCSP_id_cmp(expected, found) == 0 else { continue }
            var thisUpdate: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
            OCSP_single_get0_status(status, nil, nil, &thisUpdate, nil)
            let time = CertificateDecoding.seconds(thisUpdate) ?? .min
            if newest.map({ $0.time < time }) ?? true { newest = (status, time) }
        }
        return newest?.status
    }

    /// The digests with which responders identify certificates (RFC 5019 section 2.1.1, RFC 6960 section 4.3).
    private static func digest(_ number: Int32) -> OpaquePointer? {
        switch number {
        case NID_sha1: EVP_sha1()
        case NID_sha256: EVP_sha256()
        case NID_sha384: EVP_sha384()
        case NID_sha512: EVP_sha512()
        default: nil
        }
    }

    /// Returns what a status says, without a look at the time.
    private static func facts(of status: OpaquePointer) -> Result<StapledResponse, Malformed> {
        var reason: Int32 = -1
        var revoked: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        var (thisUpdate, nextUpdate) = (revoked, revoked)
        let code = OCSP_single_get0_status(status, &reason, &revoked, &thisUpdate, &nextUpdate)
        // A critical extension may change the meaning (RFC 6960 section 4.4).
        guard let this = CertificateDecoding.seconds(thisUpdate), OCSP_SINGLERESP_get_ext_by_critical(status, 1, -1) < 0 else {
            return .failure(Malformed())
        }
        var facts = StapledResponse(.unknown, thisUpdate: this)
        if nextUpdate != nil {
            guard let next = CertificateDecoding.seconds(nextUpdate), next >= this else { return .failure(Malformed()) }
            facts.nextUpdate = next
        }
        switch code {
        case V_OCSP_CERTSTATUS_GOOD: facts.status = .good
        case V_OCSP_CERTSTATUS_UNKNOWN: break
        case V_OCSP_CERTSTATUS_REVOKED:
            guard let time = CertificateDecoding.seconds(revoked) else { return .failure(Malformed()) }
            (facts.status, facts.revokedAt) = (.revoked, time)
            if 0...10 ~= reason { facts.revocationReason = OCSP_crl_reason_str(Int(reason)).map { String(cString: $0) } }
        default: return .failure(Malformed())
        }
        return .success(facts)
    }

    // MARK: The signature

    /// Returns the certificate whose key has signed the response, with the times in which it may do so: the issuer's, or that of a responder in
    /// the response to which the issuer has delegated the signing.
    private func signer(
        delegatedBy issuer: OpaquePointer, at time: Int64
    ) -> (certificate: OpaquePointer, validity: Range<Int64>)? {
        guard !hasWeakSignature else { return nil }
        if hasSigned(issuer) { return (issuer, .min ..< .max) }
        let certificates = OCSP_resp_get0_certs(basic)
        for index in 0..<min(max(0, OPENSSL_sk_num(certificates)), StapledResponse.maximumSigners) {
            guard let responder = OPENSSL_sk_value(certificates, index).map({ OpaquePointer($0) }),
                let validity = Self.validity(of: responder, delegatedBy: issuer), validity.contains(time), hasSigned(responder)
            else { continue }
            return (responder, validity)
        }
        return nil
    }

    /// Whether the response names this certificate as its signer, and has a valid signature by the certificate's key.
    private func hasSigned(_ certificate: OpaquePointer) -> Bool {
        guard let stack = OPENSSL_sk_new_null() else { return false }
        defer { OPENSSL_sk_free(stack) }
        guard OPENSSL_sk_push(stack, UnsafeRawPointer(certificate)) == 1 else { return false }
        // With these flags, OpenSSL takes the signer from the stack alone, and verifies the signature, and no chain.
        return OCSP_basic_verify(basic, stack, nil, UInt(OCSP_NOINTERN | OCSP_TRUSTOTHER)) == 1
    }

    /// Whether the signature's digest is one that OpenSSL refuses in certificates too, because others can be found with the same value.
    private var hasWeakSignature: Bool {
        var algorithm: OpaquePointer?
        X509_ALGOR_get0(&algorithm, nil, nil, OCSP_resp_get0_tbs_sigalg(basic))
        var (digest, key): (Int32, Int32) = (0, 0)
        guard OBJ_find_sigid_algs(OBJ_obj2nid(algorithm), &digest, &key) == 1 else { return true }
        return Self.isWeak(digest)
    }

    private static func isWeak(_ digest: Int32) -> Bool { [NID_md2, NID_md4, NID_md5, NID_sha1].contains(digest) }

    /// Returns the times of a responder to which the issuer has delegated the signing (RFC 6960 section 4.2.2.2); `nil` if it has not. Whether
    /// the responder's own certificate is revoked is not checked: such certificates live for days.
    private static func validity(of responder: OpaquePointer, delegatedBy issuer: OpaquePointer) -> Range<Int64>? {
        guard X509_check_issued(issuer, responder) == X509_V_OK else { return nil }
        let flags = X509_get_extension_flags(responder)
        guard flags & UInt32(EXFLAG_INVALID | EXFLAG_CRITICAL) == 0, flags & UInt32(EXFLAG_XKUSAGE) != 0,
            X509_get_extended_key_usage(responder) & UInt32(XKU_OCSP_SIGN) != 0,
            X509_get_key_usage(responder) & UInt32(KU_DIGITAL_SIGNATURE) != 0,
            let start = CertificateDecoding.seconds(X509_get0_notBefore(responder)),
            let end = CertificateDecoding.seconds(X509_get0_notAfter(responder)), start < end,
            let key = X509_get0_pubkey(responder), PeerChain.excess(of: key) == nil
        else { return nil }
        var (digest, algorithm): (Int32, Int32) = (0, 0)
        guard OBJ_find_sigid_algs(X509_get_signature_nid(responder), &digest, &algorithm) == 1, !isWeak(digest),
            X509_verify(responder, X509_get0_pubkey(issuer)) == 1
        else { return nil }
        return start..<end
    }
}
