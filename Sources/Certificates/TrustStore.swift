internal import COpenSSL
internal import EventLoop
package import FoundationEssentials

/// Who may be at the end of a chain, and what they have revoked.
package struct Authorities: Hashable, Sendable {
    /// Whether those of the machine, or those that the environment names in their place, are among them.
    package var includesSystem: Bool
    /// Each is an authority even when it is no root.
    package var given: Set<X509Certificate>
    package var revocation: Revocation?

    package struct Revocation: Hashable, Sendable {
        /// In DER.
        package var lists: [Data]
        /// Whether every certificate of a chain must be on no list, and not only the peer's own.
        package var coversCompleteChain: Bool

        package init(lists: [Data], coversCompleteChain: Bool) {
            self.lists = lists
            self.coversCompleteChain = coversCompleteChain
        }
    }

    package init(includesSystem: Bool, given: Set<X509Certificate> = [], revocation: Revocation? = nil) {
        self.includesSystem = includesSystem
        self.given = given
        self.revocation = revocation
    }
}

/// ``Authorities``, loaded once and shared by every connection that asks for the same ones.
///
/// Measured (Debian 12, OpenSSL 3.0.19, 139 roots in 214 kB, 2 busy cores): loading the system's bundle takes 15 to 55 ms, finding a
/// policy that is prepared already below 1 µs.
// @unchecked: an X509_STORE locks itself (X509_STORE_lock(3)), and nothing is added once `init` is done.
package final class TrustStore: @unchecked Sendable {
    let store: OpaquePointer
    /// What verification asks beyond the usual: X509_V_FLAG_…
    let flags: UInt
    /// Whether there is any authority. Without one every chain is refused, and this says why.
    let isEmpty: Bool

    private let authorities: Authorities
    private static let loaded = WeakCache<Authorities, TrustStore>()

    /// The store of these authorities, loaded now if nobody holds it. Reads files.
    package static func of(_ authorities: Authorities) throws(CertificateError) -> TrustStore {
        if let store = loaded.object(for: authorities) { return store }
        return loaded.insert(try TrustStore(authorities), for: authorities)
    }

    /// A store of its own.
    package init(_ authorities: Authorities) throws(CertificateError) {
        OpenSSL.prepare()
        guard let store = X509_STORE_new() else { throw .invalid("no memory for the authorities") }
        self.store = store
        self.authorities = authorities
        let revocation = authorities.revocation
        var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
        // An authority that was given is one even when another has signed it. A list of revoked certificates that must cover the
        // whole chain needs the chain down to its root.
        if revocation?.coversCompleteChain != true { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        if let revocation {
            flags |= UInt(X509_V_FLAG_CRL_CHECK)
            if revocation.coversCompleteChain { flags |= UInt(X509_V_FLAG_CRL_CHECK_ALL) }
        }
        self.flags = flags
        isEmpty = !authorities.includesSystem && authorities.given.isEmpty
        // Initialized by now: deinit frees the store where this throws.
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

    /// Where distributions keep one file of all authorities: Debian, Fedora, openSUSE, Alpine.
    static let systemFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    private static func loadSystem(into store: OpaquePointer) throws(CertificateError) {
        let named = EnvironmentAuthorities.current
        if named.replacesSystem { return try named.load(into: store) }
        for file in systemFiles where X509_STORE_load_file(store, file) == 1 { return }
        // A directory of files that are looked up one by one during a handshake: slower, and better than nothing.
        X509_STORE_set_default_paths(store)
    }
}
