internal import COpenSSL
internal import EventLoop

/// The facts of chains that were verified before; see ``ChainFactsCache``.
extension TLSClientContext.Loaded {
    /// Finds the facts of a chain that were kept, or verifies the chain.
    ///
    /// - Parameters:
    ///   - chain: the certificates. Their security level is that of this context.
    ///   - digest: the SHA-256 of the message with the certificates; without one, the chain is verified.
    ///   - serverName: the name that the certificate must have.
    ///   - time: the time for which dates are judged, in seconds since 1970.
    /// - Returns: The facts, which are always those of a new verification.
    func facts(
        of chain: PeerChain, _ digest: SIMD4<UInt64>?, for serverName: String, at time: Int64
    ) -> TLSChainFacts {
        let key = digest.map { ChainFactsCache.Key(digest: $0, serverName: serverName) }
        if let key, let facts = chains.withLock({ $0.facts(for: key, at: time) }) { return facts }
        var facts = chain.facts(for: serverName, authorities: authorities, at: time)
        if authorities == nil { facts.errors.insert(.missingAuthorities, at: 0) }
        if let key, !facts.mayBeTransient, let validity = chain.constancy(at: time, with: authorities) {
            chains.withLock { $0.insert(facts, for: key, validity: validity, at: time) }
        }
        return facts
    }

    /// Finds the facts of a stapled response that were kept, or verifies the response.
    ///
    /// - Parameters:
    ///   - bytes: the response, in DER.
    ///   - chain: the certificates of the server, its own first.
    ///   - digest: the SHA-256 of the message with the certificates; without one, the response is verified.
    ///   - time: the time for which dates are judged, in seconds since 1970.
    /// - Returns: The facts, which are always those of a new verification.
    func stapledResponse(
        _ bytes: UnsafeRawBufferPointer, to chain: PeerChain, _ digest: SIMD4<UInt64>?, at time: Int64
    ) -> StapledResponse {
        // A response for another chain, and another response for this chain, have keys of their own.
        let key =
            bytes.count > StapledResponse.maximumBytes
            ? nil
            : digest.flatMap { digest in
                let message = withUnsafeBytes(of: digest) { Array($0) } + bytes
                return message.withUnsafeBytes { self.digest(of: $0) }.map {
                    VerifiedFactsCache<StapledResponse>.Key(digest: $0, serverName: "")
                }
            }
        if let key, let known = stapledResponses.withLock({ $0.facts(for: key, at: time) }) { return known }
        let (response, validity) = chain.stapledResponse(bytes, authorities: authorities, at: time)
        if let key, let validity, let constancy = chain.constancy(at: time, with: authorities) {
            stapledResponses.withLock {
                $0.insert(response, for: key, validity: validity.clamped(to: constancy), at: time)
            }
        }
        return response
    }
}

extension PeerChain {
    /// Returns the times around `time` in which no certificate and no revocation list begins or ends to be valid, so that a
    /// verification gives the same errors: OpenSSL compares dates with the time only (X509_cmp_time(3)). `nil` if there may be
    /// another reason for a change.
    func constancy(at time: Int64, with authorities: TrustStore?) -> Range<Int64>? {
        guard var dates = authorities?.dates else { return nil }
        let certificates = (0..<max(0, OPENSSL_sk_num(sent))).map { OPENSSL_sk_value(sent, $0).map { OpaquePointer($0) } }
        for certificate in certificates + [own] {
            guard let certificate, let start = CertificateDecoding.seconds(X509_get0_notBefore(certificate)),
                let end = CertificateDecoding.seconds(X509_get0_notAfter(certificate))
            else { return nil }
            dates += [start, end]
        }
        // A certificate is valid from the second of its first date, and not valid any more in the second of its last one.
        let (past, future) = (dates.lazy.filter { $0 <= time }, dates.lazy.filter { $0 > time })
        return (past.max() ?? .min)..<(future.min() ?? .max)
    }
}
