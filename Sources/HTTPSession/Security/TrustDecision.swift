internal import Certificates

/// The facts about the certificates of one handshake that decide whether the server is trusted.
struct ChainFacts: Sendable {
    /// The certificates that the server sent, its own first.
    var presented: [Certificate]
    /// The valid chain from the server's certificate to an authority of the policy, or the error of its verification, which includes dates and
    /// revocation; `nil` if the policy requires no valid chain.
    var verified: Result<[Certificate], ChainError>?
    /// The chain, or the error, with the pinned certificates as the only authorities; `nil` if the policy does not require one.
    var anchoredByPins: Result<[Certificate], ChainError>?
    /// Whether the server's certificate is for the host; `nil` if no host is known.
    var nameMatches: Bool?
}

/// The reason why a server is not trusted.
enum TrustRefusal: Error, Sendable, Hashable {
    /// Invalid certificates are allowed and the name is checked, but there are no pins.
    case pinsNeeded
    /// The pinning mode requires pinned certificates, and there are none.
    case nothingPinned
    /// The server presented no certificate.
    case noCertificate
    /// The chain is not valid.
    case chain(ChainError)
    /// The certificate is for other hosts.
    case name
    /// The chain has no pinned certificate or key.
    case pins
    /// The chain has none of the keys that are pinned for these patterns of the host.
    case hostPins([HostPattern])
}

/// The decision whether a server is trusted. Rows 1 to 10 are those of AFNetworking's `evaluateServerTrust:forDomain:`.
///
/// | row | mode | invalid allowed | name checked | pins | trusted |
/// |---|---|---|---|---|---|
/// | 1 | none | yes | yes, host known | any | no: nothing would prove the name |
/// | 2 | key, certificate | yes | yes, host known | none | no, for the same reason |
/// | 3 | none | no | | | if the chain is valid and the name matches |
/// | 4 | none | yes | no, or host unknown | | yes, without a check |
/// | 5 | key, certificate | no | | | only if the chain is valid and the name matches; then rows 6 to 8 |
/// | 6 | certificate | | | some | if the chain ends at a pin and contains it; dates and name always count |
/// | 7 | certificate | | | none | no |
/// | 8 | key | no | | some | after row 5: if a certificate of the verified chain has a pinned key |
/// | 9 | key | yes | | some | if the server's own certificate has a pinned key, and the name matches |
/// | 10 | key | | | none | no |
///
/// In row 9, AFNetworking accepts the key of any certificate that the server sends, and checks no name. An attacker who appends the true
/// certificate to his own chain passes that check. This implementation requires the key whose possession the handshake proves.
///
/// Host pins apply in every row: to the verified chain, or if an invalid one is allowed, to the server's own certificate. In row 1 they count
/// as pins.
enum TrustDecision {
    static func evaluate(_ policy: SecurityPolicy, host: String?, _ facts: ChainFacts) throws(TrustRefusal) {
        guard let own = facts.presented.first else { throw .noCertificate }
        let hostPins = host.map { host in policy.hostPins.filter { $0.pattern.matches(host) } } ?? []

        if policy.allowsInvalidCertificates, policy.validatesDomainName, host != nil, hostPins.isEmpty {
            // Rows 1 and 2.
            if policy.pinningMode == .none || policy.pinnedCertificates.isEmpty { throw .pinsNeeded }
        }
        // Rows 7 and 10.
        if policy.pinningMode != .none, policy.pinnedCertificates.isEmpty { throw .nothingPinned }

        // Rows 3 and 5. Row 4 is the remaining case of mode none.
        var chain: [Certificate]?
        if !policy.allowsInvalidCertificates {
            guard let verified = facts.verified else { throw .chain(ChainError(code: 1, text: "the chain was not verified")) }
            do { chain = try verified.get() } catch { throw .chain(error) }
        }
        // If nothing else is checked, row 1 has refused servers with a name.
        if policy.validatesDomainName, host != nil, facts.nameMatches != true { throw .name }

        switch policy.pinningMode {
        case .none: break
        case .certificate:  // Row 6.
            guard let anchored = facts.anchoredByPins else { throw .pins }
            switch anchored {
            case .success(let certificates):
                guard certificates.contains(where: policy.pinnedCertificates.contains) else { throw .pins }
            case .failure(let error):
                throw error.isUnknownAuthority ? .pins : .chain(error)
            }
        case .publicKey:  // Rows 8 and 9.
            let keys = Set(policy.pinnedCertificates.map(\.publicKeyPin))
            guard (chain ?? [own]).contains(where: { keys.contains($0.publicKeyPin) }) else { throw .pins }
        }

        if !hostPins.isEmpty {
            let pins = hostPins.reduce(into: Set<PublicKeyPin>()) { $0.formUnion($1.pins) }
            guard (chain ?? [own]).contains(where: { pins.contains($0.publicKeyPin) }) else {
                throw .hostPins(hostPins.map(\.pattern))
            }
        }
    }
}
