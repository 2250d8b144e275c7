internal import Certificates
internal import EventLoop

/// A policy that is ready to judge: its files read, its ciphers known to OpenSSL, its authorities loaded.
///
/// Making one reads files and takes milliseconds; hold it as long as the session. Equal policies share one object while somebody
/// holds it, and it is told from every other by its number.
package final class PreparedPolicy: Sendable {
    package let policy: SecurityPolicy
    let parameters: TLSParameters
    let roots: TrustStore
    /// The pinned certificates as the only authorities; only where they are (``SecurityPolicy/PinningMode/certificate``).
    let pins: TrustStore?
    /// Never used again in this process.
    let number: Int

    // A class, as in TrustStore.
    // @unchecked: a weak reference is read from any thread, and never set again.
    private final class Held: @unchecked Sendable {
        private(set) weak var policy: PreparedPolicy?
        let number: Int

        init(_ policy: PreparedPolicy) {
            self.policy = policy
            number = policy.number
        }
    }
    private struct Registry {
        var held: [SecurityPolicy: Held] = [:]
        var lastNumber = 0
    }
    private static let registry = Locked(Registry())

    /// The policy, prepared. Ciphers that OpenSSL does not know, or versions of TLS that exclude each other, are an
    /// `invalidConfiguration` error.
    package static func of(_ policy: SecurityPolicy) throws(HTTPSessionError) -> PreparedPolicy {
        if let prepared = registry.withLock({ $0.held[policy]?.policy }) { return prepared }
        let parameters = try parameters(of: policy)
        let anchors = policy.pinningMode == .certificate && !policy.pinnedCertificates.isEmpty
        let (roots, pins): (TrustStore, TrustStore?)
        do {
            try parameters.check()
            roots = try TrustStore.of(Authorities(policy.roots, revocation: policy.revocation))
            pins = anchors ? try TrustStore(Authorities(.given(policy.pinnedCertificates), revocation: policy.revocation)) : nil
        } catch { throw HTTPSessionError(error) }
        return registry.withLock { registry in
            if let prepared = registry.held[policy]?.policy { return prepared }
            registry.lastNumber += 1
            let new = PreparedPolicy(policy, parameters, roots: roots, pins: pins, number: registry.lastNumber)
            registry.held[policy] = Held(new)
            return new
        }
    }

    private init(
        _ policy: SecurityPolicy, _ parameters: TLSParameters, roots: TrustStore, pins: TrustStore?, number: Int
    ) {
        self.policy = policy
        self.parameters = parameters
        self.roots = roots
        self.pins = pins
        self.number = number
    }

    deinit {
        // As in TrustStore: nobody's last hold is let go under the lock.
        Self.registry.withLock { if $0.held[policy]?.number == number { $0.held[policy] = nil } }
    }

    private static func parameters(of policy: SecurityPolicy) throws(HTTPSessionError) -> TLSParameters {
        if let maximum = policy.maximumTLSVersion, maximum < policy.minimumTLSVersion {
            throw HTTPSessionError(
                .invalidConfiguration,
                "\(policy.minimumTLSVersion.rawValue) is the oldest version allowed, \(maximum.rawValue) the newest")
        }
        return TLSParameters(
            minimum: policy.minimumTLSVersion.version, maximum: policy.maximumTLSVersion?.version,
            cipherList: policy.cipherList, cipherSuites: policy.cipherSuites)
    }
}

extension Authorities {
    init(_ roots: SecurityPolicy.Roots, revocation: RevocationLists?) {
        let lists = revocation.map { Revocation(lists: $0.derBytes, coversWholeChain: $0.scope == .wholeChain) }
        switch roots {
        case .system: self.init(includesSystem: true, revocation: lists)
        case .given(let certificates): self.init(includesSystem: false, given: Set(certificates.map(\.x509)), revocation: lists)
        case .systemAnd(let certificates):
            self.init(includesSystem: true, given: Set(certificates.map(\.x509)), revocation: lists)
        }
    }
}

extension SecurityPolicy.TLSVersion {
    fileprivate var version: TLSParameters.Version {
        switch self {
        case .v1_2: .v1_2
        case .v1_3: .v1_3
        }
    }
}
