internal import ByteComparison
internal import Certificates
internal import EventLoop
internal import Synchronization

/// A policy that is ready for use: its files are read, and its ciphers are known to OpenSSL. The system's authorities are loaded by their first use,
/// because requests without TLS do not need them.
///
/// Its creation reads files and takes milliseconds, so a session retains it. Equal policies share one object while it is retained, and each object
/// has a number of its own.
package final class PreparedPolicy: Sendable {
    package let policy: SecurityPolicy
    let parameters: TLSParameters
    private let loadedRoots = Locked<TrustStore?>(nil)
    /// The pinned certificates as the only authorities; `nil` in pinning modes other than ``SecurityPolicy/PinningMode/certificate``.
    let pins: TrustStore?
    /// The number of this object, which is not reused in this process.
    let number: Int

    /// A policy, whose texts for OpenSSL are also compared by their bytes.
    private struct Key: Hashable {
        let policy: SecurityPolicy
        let ciphers: [ExactString?]

        init(_ policy: SecurityPolicy) {
            self.policy = policy
            ciphers = [policy.cipherList, policy.cipherSuites].map { $0.map { ExactString($0) } }
        }
    }

    private static let prepared = WeakCache<Key, PreparedPolicy>()
    private static let lastNumber = Atomic(0)

    /// The prepared object of a policy.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` for unknown ciphers, for an empty range of TLS versions, and for unreadable files.
    package static func of(_ policy: SecurityPolicy) throws(HTTPSessionError) -> PreparedPolicy {
        let key = Key(policy)
        if let prepared = prepared.object(for: key) { return prepared }
        let parameters = try parameters(of: policy)
        let anchors = policy.pinningMode == .certificate && !policy.pinnedCertificates.isEmpty
        let created: PreparedPolicy
        do {
            try parameters.check()
            let pinned = Authorities(.given(policy.pinnedCertificates), revocation: policy.revocation)
            let pins = anchors ? try TrustStore(pinned) : nil
            created = PreparedPolicy(policy, parameters, pins: pins)
            if !created.authorities.areSystemAlone { _ = try created.roots() }
        } catch { throw HTTPSessionError(error) }
        return prepared.insert(created, for: key)
    }

    private var authorities: Authorities { Authorities(policy.roots, revocation: policy.revocation) }

    /// Whether the authorities are loaded.
    var hasLoadedRoots: Bool { loadedRoots.withLock { $0 != nil } }

    /// The authorities. Loading those of the system takes 15 to 80 ms.
    func roots() throws(CertificateError) -> TrustStore {
        if let loaded = loadedRoots.withLock({ $0 }) { return loaded }
        // If two threads load at once, one result is kept.
        let loaded = try TrustStore.of(authorities)
        loadedRoots.withLock { $0 = loaded }
        return loaded
    }

    /// Checks a policy without loading its authorities.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` for unknown ciphers, and for an empty range of TLS versions.
    static func check(_ policy: SecurityPolicy) throws(HTTPSessionError) {
        let parameters = try parameters(of: policy)
        // The check initializes OpenSSL, which takes milliseconds.
        guard policy.cipherList != nil || policy.cipherSuites != nil else { return }
        do { try parameters.check() } catch { throw HTTPSessionError(error) }
    }

    private init(_ policy: SecurityPolicy, _ parameters: TLSParameters, pins: TrustStore?) {
        self.policy = policy
        self.parameters = parameters
        self.pins = pins
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }

    deinit { Self.prepared.remove(ObjectIdentifier(self), for: Key(policy)) }

    private static func parameters(of policy: SecurityPolicy) throws(HTTPSessionError) -> TLSParameters {
        if let maximum = policy.maximumTLSVersion, maximum < policy.minimumTLSVersion {
            throw HTTPSessionError(
                .invalidConfiguration,
                "minimumTLSVersion \(policy.minimumTLSVersion.rawValue) is newer than maximumTLSVersion \(maximum.rawValue)")
        }
        return TLSParameters(
            minimum: policy.minimumTLSVersion.version, maximum: policy.maximumTLSVersion?.version,
            cipherList: policy.cipherList, cipherSuites: policy.cipherSuites)
    }
}

extension Authorities {
    init(_ roots: SecurityPolicy.Roots, revocation: RevocationLists?) {
        let lists = revocation.map { Revocation(lists: $0.derBytes, coversCompleteChain: $0.scope == .completeChain) }
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
