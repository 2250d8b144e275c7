internal import Certificates
internal import EventLoop
internal import FoundationEssentials

/// Judges the servers, or the proxy, of one attempt by its policy, and writes down what it finds.
struct ServerJudge: HandshakeEvaluator {
    let policy: PreparedPolicy
    /// As it is compared (``normalizedHost(_:)``).
    let host: String?
    let isProxy: Bool
    let decisions: ServerTrustDecisions?
    /// Whether somebody is to be asked what to show when the server wants a certificate.
    let asksForIdentity: Bool
    let record: Locked<ServerTrust.Record>

    /// SHA-256 of the policy, the host, the client's identity and the decisions: a TLS session made under others is not resumed.
    static func sessionContext(
        _ policy: PreparedPolicy, host: String?, identity: ClientIdentity?, decisions: ServerTrustDecisions?,
        asksForIdentity: Bool = false
    ) -> Data {
        let decided = decisions.map { "\($0.number).\($0.generation)" } ?? "-"
        var text = Data("\(policy.number) \(decided) \(identity == nil) \(asksForIdentity) \(host ?? "")\n".utf8)
        for certificate in identity.map({ [$0.certificate] + $0.chain }) ?? [] { text += certificate.derBytes }
        return digest(of: text)
    }

    /// SHA-256; where OpenSSL has none, what is like nothing else.
    private static func digest(of text: Data) -> Data {
        DigestHasher.sha256(of: text) ?? Data((0..<32).map { _ in .random(in: .min ... .max) })
    }

    func evaluate(_ chain: PeerChain) -> HandshakeVerdict {
        let facts = facts(of: chain)
        var refusal: TrustRefusal?
        do throws(TrustRefusal) { try TrustDecision.evaluate(policy.policy, host: host, facts) } catch { refusal = error }
        let verdict = verdict(refusal, facts.presented)
        record.withLock { $0.verdict = verdict }
        if case .believed = verdict { return .trusted }
        return switch refusal {
        case .chain(let error): .refusedForChain(code: error.code)
        case .name: .refusedForName
        default: .refused
        }
    }

    /// What ``TrustDecision`` wants to know.
    private func facts(of chain: PeerChain) -> ChainFacts {
        func certificates(_ result: Result<[X509Certificate], ChainError>) -> Result<[Certificate], ChainError> {
            result.map { $0.map(Certificate.init) }
        }
        var facts = ChainFacts(presented: chain.certificates.map(Certificate.init))
        facts.nameMatches = host.map { chain.isFor(host: $0) }
        if !policy.policy.allowsInvalidCertificates { facts.verified = certificates(chain.verify(against: policy.roots)) }
        if let pins = policy.pins {
            facts.anchoredByPins = certificates(chain.verify(against: pins))
            // A chain that ends at a pinned certificate need not hold the one that signed the list. What is on a list that could be asked
            // has been refused.
            if case .failure(let error) = facts.anchoredByPins, error.isMissingRevocationList {
                facts.anchoredByPins = certificates(chain.verify(against: pins, checksRevocation: false))
            }
        }
        return facts
    }

    private func verdict(_ refusal: TrustRefusal?, _ presented: [Certificate]) -> ServerTrust.Verdict {
        let error = refusal?.error(host: host, isProxy: isProxy, presented: presented)
        guard let decisions else { return error.map { .refused($0, presented) } ?? .believed }
        var text = Data()
        for certificate in presented { text += Data("\(certificate.derBytes.count) ".utf8) + certificate.derBytes }
        let key = ServerTrustDecisions.Key(policy: policy.number, host: host, chain: Self.digest(of: text))
        switch decisions.isBelieved(key, byPolicy: error == nil, at: .now) {
        case true?: return .believed
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
            record.identityQuestion = question
        }
        return !asksForIdentity
    }

    func alertArrived(description: Int32) {
        record.withLock { $0.alert = .init(description: description, isProxys: isProxy) }
    }

    func alertWasSent() { record.withLock { $0.hasSentAlert = true } }

    func sessionWasRefused() { record.withLock { $0.refusedSessions += 1 } }
}

extension ServerJudge {
    init(ofProxy proxy: ServerTrust.Proxy, record: Locked<ServerTrust.Record>) {
        self.init(
            policy: proxy.policy, host: normalizedHost(proxy.host), isProxy: true, decisions: nil, asksForIdentity: false,
            record: record)
    }
}
