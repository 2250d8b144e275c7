internal import COpenSSL
internal import EventLoop

/// A policy that is ready to judge: its files read, its ciphers known to OpenSSL, its authorities loaded.
///
/// Making one reads files and takes milliseconds; hold it as long as the session. Equal policies share one object while somebody
/// holds it, and it is told from every other by its number.
package final class PreparedPolicy: Sendable {
    package let policy: SecurityPolicy
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
        try check(policy)
        let roots = try TrustStore.of(policy.roots, revocation: policy.revocation)
        let anchors = policy.pinningMode == .certificate && !policy.pinnedCertificates.isEmpty
        let pins = anchors ? try TrustStore(.given(policy.pinnedCertificates), revocation: policy.revocation) : nil
        return registry.withLock { registry in
            if let prepared = registry.held[policy]?.policy { return prepared }
            registry.lastNumber += 1
            let new = PreparedPolicy(policy, roots: roots, pins: pins, number: registry.lastNumber)
            registry.held[policy] = Held(new)
            return new
        }
    }

    private init(_ policy: SecurityPolicy, roots: TrustStore, pins: TrustStore?, number: Int) {
        self.policy = policy
        self.roots = roots
        self.pins = pins
        self.number = number
    }

    deinit {
        // As in TrustStore: nobody's last hold is let go under the lock.
        Self.registry.withLock { if $0.held[policy]?.number == number { $0.held[policy] = nil } }
    }

    private static func check(_ policy: SecurityPolicy) throws(HTTPSessionError) {
        if let maximum = policy.maximumTLSVersion, maximum < policy.minimumTLSVersion {
            throw HTTPSessionError(
                .invalidConfiguration,
                "\(policy.minimumTLSVersion.rawValue) is the oldest version allowed, \(maximum.rawValue) the newest")
        }
        try OpenSSLErrors.contained { () throws(HTTPSessionError) in
            guard let context = SSL_CTX_new(TLS_client_method()) else {
                throw HTTPSessionError(.invalidConfiguration, "OpenSSL gives no context: \(OpenSSLErrors.newest)")
            }
            defer { SSL_CTX_free(context) }
            if let list = policy.cipherList, SSL_CTX_set_cipher_list(context, Self.authenticated(list)) != 1 {
                throw HTTPSessionError(.invalidConfiguration, "OpenSSL knows no cipher of the list \(excerpt(of: list))")
            }
            if let suites = policy.cipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 {
                throw HTTPSessionError(.invalidConfiguration, "OpenSSL does not know all cipher suites of \(excerpt(of: suites))")
            }
        }
    }

    /// Without the ciphers that need no certificate: where there is none, nobody would be judged.
    private static func authenticated(_ list: String) -> String { list + ":!aNULL:!eNULL" }

    /// Sets versions and ciphers.
    func applyProtocol(to context: OpaquePointer) -> Bool {
        func number(_ version: SecurityPolicy.TLSVersion?) -> Int32 {
            switch version {
            case nil: 0
            case .v1_2: TLS1_2_VERSION
            case .v1_3: TLS1_3_VERSION
            }
        }
        guard netwatch_ssl_ctx_set_versions(context, number(policy.minimumTLSVersion), number(policy.maximumTLSVersion)) == 1
        else {
            return false
        }
        if let list = policy.cipherList, SSL_CTX_set_cipher_list(context, Self.authenticated(list)) != 1 { return false }
        if let suites = policy.cipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 { return false }
        return true
    }
}
