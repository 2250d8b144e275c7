internal import COpenSSL
internal import EventLoop
internal import Glibc
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

    /// Whether loading reads no file that the user or the environment names. It fails only without free descriptors.
    package var areSystemAlone: Bool {
        includesSystem && given.isEmpty && revocation == nil && !EnvironmentAuthorities.current.replacesSystem
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

    /// Whether a certificate is checked for revocation by the lists of its issuer, as far as there are any, also if it is trusted itself.
    var checksIssuers: Bool { authorities.revocation?.coversCompleteChain == true && !requiresAllLists }

    /// The length of all revocation lists.
    let revocationListBytes: Int

    /// The times at which a certificate or a revocation list of the store begins or ends to be valid, in seconds since 1970,
    /// sorted. `nil` if the content of the store may change, or if a time cannot be decoded.
    let dates: [Int64]?

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
        revocationListBytes = revocation?.lists.reduce(0) { $0 + $1.count } ?? 0
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
        do throws(CertificateError) {
            let isFixed = try OpenSSLErrors.contained { () throws(CertificateError) in
                try Self.fill(store, with: authorities)
            }
            dates = isFixed ? Self.dates(in: store) : nil
        } catch {
            X509_STORE_free(store)
            throw error
        }
    }

    /// Adds the authorities and the lists to a store.
    ///
    /// - Returns: Whether the content of the store never changes.
    private static func fill(_ store: OpaquePointer, with authorities: Authorities) throws(CertificateError) -> Bool {
        let isFixed = authorities.includesSystem ? try loadSystem(into: store) : true
        for certificate in authorities.given {
            guard let x509 = CertificateDecoding.x509(certificate) else { continue }
            X509_STORE_add_cert(store, x509)
            X509_free(x509)
        }
        X509_STORE_set_lookup_crls(store, TLSCallbacks.revocationLists)
        for list in authorities.revocation?.lists ?? [] {
            let crl = list.withUnsafeBytes { bytes in
                var next = bytes.bindMemory(to: UInt8.self).baseAddress
                return d2i_X509_CRL(nil, &next, bytes.count)
            }
            X509_STORE_add_crl(store, crl)
            X509_CRL_free(crl)
        }
        return isFixed
    }

    /// Returns the dates of all certificates and lists of a store, sorted; `nil` if one cannot be decoded. A list may have no date
    /// of the next one.
    private static func dates(in store: OpaquePointer) -> [Int64]? {
        let objects = X509_STORE_get0_objects(store)
        var dates: [Int64] = []
        for index in 0..<max(0, OPENSSL_sk_num(objects)) {
            guard let object = OPENSSL_sk_value(objects, index).map({ OpaquePointer($0) }) else { return nil }
            var times: [UnsafePointer<ASN1_TIME>?] = []
            if let certificate = X509_OBJECT_get0_X509(object) {
                times = [X509_get0_notBefore(certificate), X509_get0_notAfter(certificate)]
            } else if let list = X509_OBJECT_get0_X509_CRL(object) {
                times = [X509_CRL_get0_lastUpdate(list)]
                if let next = X509_CRL_get0_nextUpdate(list) { times.append(next) }
            }
            for time in times {
                guard let date = CertificateDecoding.seconds(time) else { return nil }
                dates.append(date)
            }
        }
        return dates.sorted()
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

    /// Adds the system's authorities, or those that the environment names instead.
    ///
    /// - Returns: Whether the content of the store never changes. OpenSSL looks up the files of directories during handshakes.
    private static func loadSystem(into store: OpaquePointer) throws(CertificateError) -> Bool {
        let named = EnvironmentAuthorities.current
        if named.replacesSystem {
            try named.load(into: store)
            return named.directories == nil
        }
        for file in systemFiles {
            if X509_STORE_load_file(store, file) == 1 { return true }
            // Without free descriptors, a later call may succeed.
            let error = EnvironmentAuthorities.readError(file)
            guard error != EMFILE, error != ENFILE else {
                throw .invalid("'\(file)' cannot be read: \(String(cString: strerror(error)))")
            }
        }
        // OpenSSL looks up the files of this directory one by one during a handshake. That is slower, but better than no
        // authorities.
        X509_STORE_set_default_paths(store)
        return false
    }
}
