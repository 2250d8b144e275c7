internal import Certificates

/// What is known of the certificates of one handshake when it is judged.
struct ChainFacts: Sendable {
    /// As the server sent them, its own first. Never empty for a server that showed any.
    var presented: [Certificate]
    /// From the server's own to an authority of the policy, or why there is no such chain, dates and revocation included; `nil`
    /// where the policy does not ask.
    var verified: Result<[Certificate], ChainError>?
    /// The same with the pinned certificates as the only authorities; `nil` where the policy does not ask.
    var anchoredByPins: Result<[Certificate], ChainError>?
    /// Whether the server's own certificate is for the host; `nil` where no host is known.
    var nameMatches: Bool?
}

/// Why a server is not believed.
enum TrustRefusal: Error, Sendable, Hashable {
    /// Invalid certificates are allowed, a name is to be checked, and nothing is pinned.
    case pinsNeeded
    /// Something is to be pinned, and nothing is.
    case nothingPinned
    /// The server showed no certificate.
    case noCertificate
    /// No valid chain.
    case chain(ChainError)
    /// The certificate is for other hosts.
    case name
    /// No pinned certificate, or no pinned key, where one must be.
    case pins
    /// None of the pins of these patterns, which are for the host.
    case hostPins([HostPattern])
}

/// The decision, as a function: rows 1 to 10 are those of AFNetworking's `evaluateServerTrust:forDomain:`.
///
/// | row | mode | invalid allowed | name checked | pins | answer |
/// |---|---|---|---|---|---|
/// | 1 | none | yes | yes, host known | any | no: nothing would prove the name |
/// | 2 | key, certificate | yes | yes, host known | none | no, likewise |
/// | 3 | none | no | | | valid chain, and name |
/// | 4 | none | yes | no, or host unknown | | yes, nothing checked |
/// | 5 | key, certificate | no | | | a valid chain, and name, before anything else |
/// | 6 | certificate | | | some | the chain ends at a pin and holds it: dates and name count, whatever is allowed |
/// | 7 | certificate | | | none | no |
/// | 8 | key | no | | some | after row 5: a certificate of the verified chain has a pinned key |
/// | 9 | key | yes | | some | the server's own certificate has a pinned key, and the name |
/// | 10 | key | | | none | no |
///
/// AFNetworking's row 9 takes any certificate that the server sends, and no name: whoever appends the true certificate to a chain
/// of his own passes. Ours asks for the key whose possession the handshake proves.
///
/// Host pins hold in every row: against the verified chain, or where an invalid one is allowed, against the server's own
/// certificate. There they are pins in the sense of row 1.
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

        // Rows 3 and 5. Row 4 is what is left of mode none.
        var chain: [Certificate]?
        if !policy.allowsInvalidCertificates {
            guard let verified = facts.verified else { throw .chain(ChainError(code: 1, text: "the chain was not verified")) }
            do { chain = try verified.get() } catch { throw .chain(error) }
        }
        // Where nothing else is checked, row 1 has refused what has a name.
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
