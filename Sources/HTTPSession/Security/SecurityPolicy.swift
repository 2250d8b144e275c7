internal import FoundationEssentials

/// Whom a session believes to be the server: authorities, names, pins, revocation, and which TLS is spoken.
///
/// The rules are those of AFNetworking's AFSecurityPolicy, with one hole closed: where invalid certificates are allowed and keys
/// are pinned, the key of the server's own certificate decides and no other, because a server proves possession of that one only;
/// and the host's name is checked still, unless `validatesDomainName` is off.
///
/// A policy is a value. Connections, TLS sessions and decisions made under one are never used under another that differs from it
/// in any property.
public struct SecurityPolicy: Sendable, Hashable, Codable {
    /// What beyond a valid chain is asked of a server's certificates.
    @nonexhaustive public enum PinningMode: String, Sendable, Hashable, Codable, CaseIterable {
        /// Nothing: the authorities decide.
        case none
        /// A certificate of the chain has the public key of a pinned certificate.
        case publicKey = "public-key"
        /// The chain ends at a pinned certificate and holds it.
        case certificate
    }

    /// Versions of TLS, older ones first.
    @nonexhaustive public enum TLSVersion: String, Sendable, Hashable, Codable, Comparable, CaseIterable {
        /// RFC 5246.
        case v1_2 = "TLSv1.2"
        /// RFC 8446.
        case v1_3 = "TLSv1.3"

        /// Older before newer.
        public static func < (left: Self, right: Self) -> Bool { left == .v1_2 && right == .v1_3 }
    }

    /// The authorities at which a chain may end.
    @nonexhaustive public enum Roots: Sendable, Hashable, Codable {
        /// Those of the machine, read once: the distribution's bundle. The environment variables `SSL_CERT_FILE`, a file, and `SSL_CERT_DIR`,
        /// directories with hashed names (openssl-rehash(1)), replace it if one of them is set. If one names nothing that has a certificate,
        /// making a session throws ``HTTPSessionError/Code/invalidConfiguration``.
        case system
        /// These alone. Each is an authority even when it is no root.
        case given(Set<Certificate>)
        /// Those of the machine and these.
        case systemAnd(Set<Certificate>)
    }

    /// What is pinned. Default: ``PinningMode/none``.
    public var pinningMode: PinningMode
    /// The certificates that ``pinningMode`` is about.
    public var pinnedCertificates: Set<Certificate>
    /// Whether a chain may be invalid: expired, of an unknown authority, revoked. Default: false.
    ///
    /// With a name to check it is of use only together with pins: without any, every connection is refused.
    public var allowsInvalidCertificates = false
    /// Whether the certificate must be for the host that was asked for. Default: true.
    public var validatesDomainName = true
    /// Pins of keys by host. They hold in every ``pinningMode``, beside it.
    public var hostPins: [HostPins] = []
    /// The authorities. Default: ``Roots/system``.
    public var roots: Roots = .system
    /// What authorities have revoked. Default: `nil`, nothing is asked.
    public var revocation: RevocationLists?
    /// The oldest version of TLS. Default: 1.2; older ones cannot be had (RFC 8996).
    public var minimumTLSVersion: TLSVersion = .v1_2
    /// The newest version of TLS. Default: `nil`, the newest that OpenSSL knows.
    public var maximumTLSVersion: TLSVersion?
    /// Ciphers of TLS 1.2 in OpenSSL's notation (openssl-ciphers(1)), such as `ECDHE+AESGCM`. Default: `nil`, OpenSSL's own.
    public var cipherList: String?
    /// Cipher suites of TLS 1.3, separated by colons, such as `TLS_AES_256_GCM_SHA384`. Default: `nil`, OpenSSL's own.
    public var cipherSuites: String?

    /// A policy that pins `pinnedCertificates` as `pinningMode` says.
    public init(pinningMode: PinningMode = .none, pinnedCertificates: Set<Certificate> = []) {
        self.pinningMode = pinningMode
        self.pinnedCertificates = pinnedCertificates
    }

    /// A policy that pins every certificate of a directory (``Certificate/all(inDirectory:)``). What cannot be read or parsed is
    /// an `invalidConfiguration` error that names the file.
    public init(pinningMode: PinningMode, certificatesInDirectory path: String) throws(HTTPSessionError) {
        self.init(pinningMode: pinningMode, pinnedCertificates: try Certificate.all(inDirectory: path))
    }

    /// The system's authorities and the host's name; nothing pinned.
    public static let `default` = SecurityPolicy()

    /// Whether anything is pinned for any host.
    public var pinsAnything: Bool { pinningMode != .none || !hostPins.isEmpty }

    /// AFNetworking's rule ("Invalid Security Policy"): who pins means a server that is asked by TLS. Host pins say themselves for whom
    /// they are, and need no base URL.
    func requireSecure(_ base: URL?) throws(HTTPSessionError) {
        let origin = base.flatMap(Origin.init)
        guard origin?.scheme != "https" else { return }
        guard pinningMode == .none else {
            throw HTTPSessionError(
                .invalidConfiguration,
                "a policy that pins needs a base URL of https, and \(origin.map { "\($0)" } ?? "none") is given")
        }
        if let origin, let pins = hostPins.first(where: { $0.pattern.matches(origin.host) }) {
            throw HTTPSessionError(
                .invalidConfiguration, "keys are pinned for \(pins.pattern), and \(origin) is asked without TLS")
        }
    }
}
