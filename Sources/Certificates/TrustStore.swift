internal import COpenSSL
internal import EventLoop
package import FoundationEssentials

/// The trusted authorities of certificate chains, and their revocation lists.
package struct Authorities: Hashable, Sendable {
    /// Whether the system's authorities are included, or those that the environment names instead.
    package var includesSystem: Bool
    /// Additional authorities. Each one is trusted even if it is not a root.
    package var given: Set<X509Certificate>
    package var revocation: Revocation?

    package struct Revocation: Hashable, Sendable {
        /// The lists in DER.
        package var lists: [Data]
        /// Whether every certificate of a chain is checked, and not only the peer's own.
        package var coversCompleteChain: Bool
        /// Whether each certificate that is checked needs a list. Otherwise only the peer's own needs one.
        package var requiresAllLists: Bool

        package init(lists: [Data], coversCompleteChain: Bool, requiresAllLists: Bool = true) {
            self.lists = lists
            self.coversCompleteChain = coversCompleteChain
            self.requiresAllLists = requiresAllLists
        }
    }

    package init(includesSystem: Bool, given: Set<X509Certificate> = [], revocation: Revocation? = nil) {
        self.includesSystem = includesSystem
        self.given = given
        self.revocation = revocation
    }
}

/// The loaded form of ``Authorities``, shared by all connections that use equal ones.
///
/// Measured (Debian 12, OpenSSL 3.0.19, 139 roots in 214 kB, 2 busy cores): loading the system's bundle takes 15 to 55 ms;
/// finding a loaded store takes less than 1 µs.
// @unchecked: an X509_STORE has its own lock (X509_STORE_lock(3)), and nothing is added after `init`.
package final class TrustStore: @unchecked Sendable {
    let store: OpaquePointer
    /// The additional flags of verification, X509_V_FLAG_….
    let flags: UInt
    /// Whether there is no authority. Every chain is refused then, and the error's text gives this reason.
    let isEmpty: Bool

    /// Whether each certificate that is checked for revocation needs a list.
    let requiresAllLists: Bool

    private let authorities: Authorities
    private static let loaded = WeakCache<Authorities, TrustStore>()

    /// Returns the store of these authorities, and loads it if it is not in use. Reads files.
    package static func of(_ authorities: Authorities) throws(CertificateError) -> TrustStore {
        if let store = loaded.object(for: authorities) { return store }
        return loaded.insert(try TrustStore(authorities), for: authorities)
    }

    /// Creates a store that is not shared.
    package init(_ authorities: Authorities) throws(CertificateError) {
        OpenSSL.prepare()
        guard let store = X509_STORE_new() else { throw .invalid("no memory for the authorities") }
        self.store = store
        self.authorities = authorities
        let revocation = authorities.revocation
        requiresAllLists = revocation?.requiresAllLists ?? true
        var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
        // A given authority is trusted even if another one has signed it. Lists that are all required need the chain up to its
        // root.
        if revocation?.coversCompleteChain != true || !requiresAllLists { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        if let revocation {
            flags |= UInt(X509_V_FLAG_CRL_CHECK)
            if revocation.coversCompleteChain { flags |= UInt(X509_V_FLAG_CRL_CHECK_ALL) }
        }
        self.flags = flags
        isEmpty = !authorities.includesSystem && authorities.given.isEmpty
        // All properties are initialized: if this throws, deinit frees the store.
        if authorities.includesSystem {
            try OpenSSLErrors.contained { () throws(CertificateError) in try Self.loadSystem(into: store) }
        }
        OpenSSLErrors.contained {
            for certificate in authorities.given {
                guard let x509 = CertificateDecoding.x509(certificate) else { continue }
                X509_STORE_add_cert(store, x509)
                X509_free(x509)
            }
            for list in revocation?.lists ?? [] {
                let crl = list.withUnsafeBytes { bytes in
                    var next = bytes.bindMemory(to: UInt8.self).baseAddress
                    return d2i_X509_CRL(nil, &next, bytes.count)
                }
                X509_STORE_add_crl(store, crl)
                X509_CRL_free(crl)
            }
        }
    }

    deinit {
        X509_STORE_free(store)
        Self.loaded.remove(ObjectIdentifier(self), for: authorities)
    }

    /// The paths of the file with all authorities on Debian, Fedora, openSUSE and Alpine.
    static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    private static func loadSystem(into store: OpaquePointer) throws(CertificateError) {
        let named = EnvironmentAuthorities.current
        if named.replacesSystem { return try named.load(into: store) }
        for file in systemFiles where X509_STORE_load_file(store, file) == 1 { return }
        // OpenSSL looks up the files of this directory one by one during a handshake. That is slower, but better than no
        // authorities.
        X509_STORE_set_default_paths(store)
    }
}
