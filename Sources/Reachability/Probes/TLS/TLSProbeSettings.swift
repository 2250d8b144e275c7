internal import ByteComparison
package import Certificates
package import FoundationEssentials

/// The trust of TLS probes, and the certificate that they expect. By default: the system's authorities, and 14 days of validity.
public struct TLSProbeSettings: Hashable, Sendable {
    /// The error for a file of certificates or revocation lists that cannot be used.
    public struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line that names the file and the reason.
        public let description: String
        /// The errno of reading the file; `nil` if its contents are not valid.
        package let systemError: Int32?

        package init(_ description: String, systemError: Int32? = nil) {
            self.description = description
            self.systemError = systemError
        }
    }

    /// The name that the server receives (RFC 6066 section 3) and that its certificate must have; `nil`, the default, for the host.
    public var serverName: String?
    /// The names of ALPN (RFC 7301) in order of preference; empty, the default, for none. HTTP probes offer `http/1.1`.
    public var applicationProtocols: [String] = []
    /// Whether the errors of a certificate are evidence only; false by default.
    public var isInsecure = false
    /// The number of days before the expiry of a certificate from which the server is degraded; 14 by default, 0 for never.
    public var certificateDays = 14
    private(set) var authorities = Authorities(includesSystem: true)
    /// The certificate that the target receives if it requests one; `nil`, the default, for none. Hosts to which it redirects do not receive it.
    package var identity: ClientCertificate?

    /// Creates the default settings.
    public init() {}

    /// Trusts the authorities in a file instead of the system's. Reads the file.
    ///
    /// - Parameter path: a file with certificates in PEM, or with one in DER.
    /// - Throws: ``FileError`` if the file cannot be read, or has no certificate.
    public mutating func trustAuthorities(in path: String) throws(FileError) {
        try trustAuthorities(Self.contents(of: path), named: path)
    }

    /// Reads a file that may be a pipe, for ``trustAuthorities(_:named:)``.
    package static func contents(of path: String) throws(FileError) -> Data { try TrustFile.contents(of: path) }

    /// Trusts these authorities instead of the system's. `name` is that of their file, for errors.
    package mutating func trustAuthorities(_ data: Data, named name: String) throws(FileError) {
        do {
            let certificates = try CertificateDecoding.certificates(in: data, named: name)
            authorities = Authorities(includesSystem: false, given: Set(certificates), revocation: authorities.revocation)
        } catch { throw Self.failure(error, name) }
    }

    /// Checks the server's certificates against the revocation lists in a file (RFC 5280 section 5). Reads the file.
    ///
    /// The server's own certificate needs a list of its issuer. The other certificates of its chain are checked if there is one.
    ///
    /// - Parameter path: a file with lists in PEM, or with one in DER.
    /// - Throws: ``FileError`` if the file cannot be read, or has no list.
    public mutating func checkRevocation(by path: String) throws(FileError) {
        let data = try TrustFile.contents(of: path)
        do {
            let lists = try CertificateDecoding.revocationLists(in: data, named: path)
            authorities.revocation = Authorities.Revocation(lists: lists, coversCompleteChain: true, requiresAllLists: false)
        } catch { throw Self.failure(error, path) }
    }

    /// Whether both are equal, compared by the bytes of their texts.
    public static func == (one: TLSProbeSettings, other: TLSProbeSettings) -> Bool {
        one.serverName.isExactly(other.serverName) && one.applicationProtocols.isExactly(other.applicationProtocols)
            && one.isInsecure == other.isInsecure && one.certificateDays == other.certificateDays
            && one.authorities == other.authorities && one.identity == other.identity
    }

    /// Hashes the names and the authorities.
    public func hash(into hasher: inout Hasher) {
        serverName?.hashBytes(into: &hasher)
        hasher.combine(applicationProtocols.count)
        for name in applicationProtocols { name.hashBytes(into: &hasher) }
        hasher.combine(isInsecure)
        hasher.combine(certificateDays)
        hasher.combine(authorities)
        hasher.combine(identity)
    }

    /// Shows a client certificate to targets that request one (RFC 8446 section 4.3.2), and not to hosts to which they redirect. Reads the files.
    ///
    /// - Parameters:
    ///   - path: a file with the certificate and its chain in PEM, the client's own first.
    ///   - key: a file with its private key in PEM, without a passphrase; `nil` for the file of the certificate.
    /// - Throws: ``FileError`` if a file cannot be read, has no certificate or no key, or if the key does not belong to the certificate.
    public mutating func identifyClient(by path: String, key: String? = nil) throws(FileError) {
        let certificate = try TrustFile.contents(of: path)
        let privateKey = if let key { try TrustFile.contents(of: key) } else { certificate }
        identity = try Self.identity(certificate, named: path, key: privateKey, named: key)
    }

    /// Returns the client certificate in files that have been read. Each is read once: it may be a pipe.
    package static func identity(
        _ certificate: Data, named name: String, key: Data, named keyName: String?
    ) throws(FileError) -> ClientCertificate {
        let certificates: [X509Certificate]
        do { certificates = try CertificateDecoding.certificates(in: certificate, named: name) } catch {
            throw FileError("\(name): has no certificate that can be read")
        }
        let privateKey: PrivateKey
        do { privateKey = try PrivateKey(pem: key, passphrase: nil, named: keyName ?? name) } catch {
            let remedy = keyName == nil ? "; name the file of the key" : ""
            throw FileError("\(keyName ?? name): has no private key that can be read without a passphrase\(remedy)")
        }
        let identity: ClientCertificate
        do { identity = try ClientCertificate(certificates, privateKey, named: name) } catch {
            throw FileError("\(keyName ?? name): the private key does not belong to the certificate of \(name)")
        }
        do { try identity.check() } catch { throw Self.failure(error, name, isNamed: false) }
        return identity
    }

    private static func failure(_ error: CertificateError, _ path: String, isNamed: Bool = true) -> FileError {
        if case .invalid(let reason) = error {
            FileError(isNamed ? reason : "\(path): \(reason)")
        } else {
            FileError("\(path): cannot be used")
        }
    }
}
