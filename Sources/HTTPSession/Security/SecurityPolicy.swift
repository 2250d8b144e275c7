internal import FoundationEssentials

/// The policy that decides whether a server's certificate is trusted: authorities, names, pins, revocation and versions of TLS.
///
/// The rules are those of AFNetworking's AFSecurityPolicy, with one difference, which applies if invalid certificates are allowed and keys are
/// pinned. Then only the key of the server's own certificate counts, because a server proves possession of that key only. The host name is still
/// checked unless `validatesDomainName` is `false`.
///
/// A policy is a value. Connections, TLS sessions and decisions made under one policy are never used under another one that differs in any
/// property.
public struct SecurityPolicy: Sendable, Hashable, Codable {
    /// The pins that a server's certificates must match.
    @nonexhaustive public enum PinningMode: String, Sendable, Hashable, Codable, CaseIterable {
        /// No pins: the authorities decide.
        case none
        /// One certificate of the chain must have the public key of a pinned certificate.
        case publicKey = "public-key"
        /// The chain must end at a pinned certificate and contain it.
        case certificate
    }

    /// A version of TLS.
    @nonexhaustive public enum TLSVersion: String, Sendable, Hashable, Codable, Comparable, CaseIterable {
        /// TLS 1.2 (RFC 5246).
        case v1_2 = "TLSv1.2"
        /// TLS 1.3 (RFC 8446).
        case v1_3 = "TLSv1.3"

        /// Whether the left version is older than the right one.
        public static func < (left: Self, right: Self) -> Bool { left == .v1_2 && right == .v1_3 }
    }

    /// The authorities at which a chain may end.
    @nonexhaustive public enum Roots: Sendable, Hashable, Codable {
        /// The authorities of the system, from the distribution's bundle, read once.
        ///
        /// The environment variables `SSL_CERT_FILE`, a file, and `SSL_CERT_DIR`, directories with hashed names (openssl-rehash(1)), replace the
        /// bundle if one of them is set. If one of them leads to no certificate, the initializer of the session throws
        /// ``HTTPSessionError/Code/invalidConfiguration``.
        case system
        /// The given certificates only. Each is an authority even if it is not a root.
        case given(Set<Certificate>)
        /// The authorities of the system and the given certificates.
        case systemAnd(Set<Certificate>)
    }

    /// The pins that a server's certificates must match; ``PinningMode/none`` by default.
    public var pinningMode: PinningMode
    /// The pinned certificates, which apply in the modes ``PinningMode/publicKey`` and ``PinningMode/certificate``; empty by default.
    public var pinnedCertificates: Set<Certificate>
    /// Whether a chain may be invalid: expired, of an unknown authority, or revoked; `false` by default.
    ///
    /// If the host name is checked, this requires pins: without pins, every connection is refused.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must be valid for the host of the request; `true` by default.
    public var validatesDomainName = true
    /// The pinned keys by host, which apply in every ``pinningMode`` and in addition to it; none by default.
    public var hostPins: [HostPins] = []
    /// The trusted authorities; ``Roots/system`` by default.
    public var roots: Roots = .system
    /// The revocation lists that certificates are checked against; `nil` for no check.
    public var revocation: RevocationLists?
    /// The oldest accepted version of TLS; 1.2 by default. Older versions are not supported (RFC 8996).
    public var minimumTLSVersion: TLSVersion = .v1_2
    /// The newest accepted version of TLS; `nil` for the newest that OpenSSL supports.
    public var maximumTLSVersion: TLSVersion?
    /// The ciphers of TLS 1.2 in OpenSSL's notation (openssl-ciphers(1)), such as `ECDHE+AESGCM`; `nil` for OpenSSL's default.
    public var cipherList: String?
    /// The cipher suites of TLS 1.3, separated by colons, such as `TLS_AES_256_GCM_SHA384`; `nil` for OpenSSL's default.
    public var cipherSuites: String?

    /// Creates a policy. By default it pins nothing and trusts the authorities of the system.
    public init(pinningMode: PinningMode = .none, pinnedCertificates: Set<Certificate> = []) {
        self.pinningMode = pinningMode
        self.pinnedCertificates = pinnedCertificates
    }

    /// Creates a policy that pins all certificates of a directory (``Certificate/all(inDirectory:)``).
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the directory or the file that cannot be read or parsed.
    public init(pinningMode: PinningMode, certificatesInDirectory path: String) throws(HTTPSessionError) {
        self.init(pinningMode: pinningMode, pinnedCertificates: try Certificate.all(inDirectory: path))
    }

    /// The default policy: the authorities of the system, a check of the host name, and no pins.
    public static let `default` = SecurityPolicy()

    /// Whether certificates or keys are pinned for any host.
    public var pinsAnything: Bool { pinningMode != .none || !hostPins.isEmpty }

    /// Throws if the policy pins but the base URL is not https, as AFNetworking does ("Invalid Security Policy").
    ///
    /// Host pins name their hosts, and need no base URL.
    func requireSecure(_ base: URL?) throws(HTTPSessionError) {
        let origin = base.flatMap(Origin.init)
        guard origin?.scheme != "https" else { return }
        guard pinningMode == .none else {
            throw HTTPSessionError(
                .invalidConfiguration,
                "a policy that pins certificates requires an https base URL, and \(origin.map { "\($0)" } ?? "none") is given")
        }
        if let origin, let pins = hostPins.first(where: { $0.pattern.matches(origin.host) }) {
            throw HTTPSessionError(
                .invalidConfiguration, "keys are pinned for \(pins.pattern), but the base URL \(origin) does not use TLS")
        }
    }
}
