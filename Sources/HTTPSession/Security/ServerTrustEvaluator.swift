internal import ByteComparison
internal import Certificates
internal import EventLoop
internal import FoundationEssentials

/// Evaluates the certificates of the servers, or of the proxy, of one attempt by its policy, and records the results.
struct ServerTrustEvaluator: HandshakeEvaluator {
    let policy: PreparedPolicy
    /// The host in the form of ``normalizedHost(_:)``; `nil` if no name is checked.
    let host: String?
    let isProxy: Bool
    let decisions: ServerTrustDecisions?
    /// Whether a handler is asked for an identity when the server requests a client certificate.
    let asksForIdentity: Bool
    let record: Locked<ServerTrust.Record>

    /// The SHA-256 of the policy, the host, the client's identity and the decisions. A TLS session with another digest is not resumed.
    static func sessionContext(
        _ policy: PreparedPolicy, host: String?, identity: ClientIdentity?, decisions: ServerTrustDecisions?,
        asksForIdentity: Bool = false
    ) -> Data {
        let key = ContextKey(
            policy: policy.number, decisions: decisions?.number, generation: decisions?.generation,
            host: host.map { ExactString($0) },
            asksForIdentity: asksForIdentity)
        guard let identity else {
            if let known = contexts.withLock({ $0[key] }) { return known }
            let context = digest(of: key.text)
            contexts.withLock { contexts in
                if contexts.count >= 256 { contexts.removeAll() }
                contexts[key] = context
            }
            return context
        }
        return digest(of: ([identity.certificate] + identity.chain).reduce(into: key.text) { $0 += $1.derBytes })
    }

    /// The values on which a context without a client's identity depends. The numbers of policies and decisions are unique in this process.
    private struct ContextKey: Hashable {
        let policy: Int
        let decisions: Int?
        let generation: Int?
        let host: ExactString?
        let asksForIdentity: Bool

        var text: Data {
            Data("\(policy) \(decisions ?? -1).\(generation ?? -1) \(asksForIdentity) \(host?.wrappedValue ?? "")\n".utf8)
        }
    }

    /// At most 256 contexts of requests without a client's identity, for tasks whose handler decides about servers: each of their attempts has
    /// parameters of its own, and a digest takes as long as a tenth of a request.
    private static let contexts = Locked<[ContextKey: Data]>([:])

    /// The SHA-256 of data; random bytes if OpenSSL does not provide it, so that no digest equals another.
    private static func digest(of text: Data) -> Data {
        DigestHasher.sha256(of: text) ?? Data((0..<32).map { _ in .random(in: .min ... .max) })
    }

    func evaluate(_ chain: PeerChain) -> HandshakeEvaluation {
        let verification = policy.policy.allowsInvalidCertificates ? nil : verify(chain)
        let verdict = verdict(on: chain, verification)
        return HandshakeEvaluation(
            verdict, verification: verification, checksName: policy.policy.validatesDomainName && host != nil)
    }

    private func verdict(on chain: PeerChain, _ verification: ChainVerification?) -> HandshakeVerdict {
        let facts = facts(of: chain, verification)
        var refusal: TrustRefusal?
        do throws(TrustRefusal) { try TrustDecision.evaluate(policy.policy, host: host, facts) } catch { refusal = error }
        let verdict = verdict(refusal, facts.presented)
        record.withLock { $0.verdict = verdict }
        if case .trusted = verdict { return .trusted }
        return switch refusal {
        case .chain(let error): .refusedForChain(code: error.code)
        case .name: .refusedForName
        default: .refused
        }
    }

    func costIsExcessive(_ excess: String) { record.withLock { $0.excess = .init(text: excess, isOfProxy: isProxy) } }

    /// The facts that ``TrustDecision`` evaluates.
    private func facts(of chain: PeerChain, _ verification: ChainVerification?) -> ChainFacts {
        func certificates(_ verification: ChainVerification) -> Result<[Certificate], ChainError> {
            verification.result.map { $0.map(Certificate.init) }
        }
        var facts = ChainFacts(presented: chain.certificates.map(Certificate.init))
        facts.nameMatches = host.map { chain.isFor(host: $0) }
        facts.verified = verification.map(certificates)
        if let pins = policy.pins {
            facts.anchoredByPins = certificates(chain.verify(against: pins))
            // A chain that ends at a pinned certificate may lack the certificate that signed the list. A certificate on an available list has been
            // refused before.
            if case .failure(let error) = facts.anchoredByPins, error.isMissingRevocationList {
                facts.anchoredByPins = certificates(chain.verify(against: pins, checksRevocation: false))
            }
        }
        return facts
    }

    /// The chain up to one of the policy's authorities.
    private func verify(_ chain: PeerChain) -> ChainVerification {
        do throws(CertificateError) { return chain.verify(against: try policy.roots()) } catch {
            return ChainVerification(errors: [ChainError(code: ChainError.outOfMemory, text: "\(error)")])
        }
    }

    private func verdict(_ refusal: TrustRefusal?, _ presented: [Certificate]) -> ServerTrust.Verdict {
        let error = refusal?.error(host: host, isProxy: isProxy, presented: presented)
        guard let decisions else { return error.map { .refused($0, presented) } ?? .trusted }
        var text = Data()
        for certificate in presented { text += Data("\(certificate.derBytes.count) ".utf8) + certificate.derBytes }
        let key = ServerTrustDecisions.Key(policy: policy.number, host: host, chain: Self.digest(of: text))
        switch decisions.isTrusted(key, byPolicy: error == nil, at: .now) {
        case true?: return .trusted
        case false?:
            return .refused(
                error ?? HTTPSessionError(.certificateUntrusted, "the session's handler refused \(host ?? "the server")"),
                presented)
        case nil:
            return .undecided(ServerTrustChallenge(host: host, certificates: presented, policyError: error, key: key))
        }
    }

    func certificateWasRequested(by authorities: () -> [String]) -> Bool {
        guard !isProxy else { return true }
        let question = asksForIdentity ? authorities() : nil
        record.withLock { record in
            record.wantsClientCertificate = true
            record.requestedAuthorities = question
        }
        return !asksForIdentity
    }

    func alertArrived(description: Int32) {
        record.withLock { $0.alert = .init(description: description, isFromProxy: isProxy) }
    }

    func alertWasSent() { record.withLock { $0.hasSentAlert = true } }

    func sessionWasRefused() { record.withLock { $0.refusedSessions += 1 } }
}

extension ServerTrustEvaluator {
    init(ofProxy proxy: TrustParameters.Proxy, record: Locked<ServerTrust.Record>) {
        self.init(
            policy: proxy.policy, host: normalizedHost(proxy.host), isProxy: true, decisions: nil, asksForIdentity: false,
            record: record)
    }
}
