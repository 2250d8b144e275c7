internal import Certificates
public import FoundationEssentials

/// A client certificate with its chain and its private key.
///
/// Its description, its mirror and logs contain the subject of the certificate, never the key.
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let key: PrivateKey
    /// The certificate of the client.
    public let certificate: Certificate
    /// The certificates that are sent after it, its issuer first.
    public let chain: [Certificate]

    /// Creates an identity from data.
    ///
    /// - Parameters:
    ///   - certificate: The certificate and its chain in PEM, or the certificate in DER.
    ///   - privateKey: The private key in PEM (PKCS#8 or traditional).
    ///   - passphrase: The passphrase of an encrypted key; `nil` for none.
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if one of them cannot be parsed, the passphrase does not decrypt the key, or the key
    ///   does not belong to the certificate.
    public init(certificate: Data, privateKey: Data, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            Certificate.certificates(in: certificate, named: "the client certificate"),
            Self.key(in: privateKey, passphrase, named: "the private key"), named: "the client certificate")
    }

    /// Creates an identity from files, whose content is as in ``init(certificate:privateKey:passphrase:)``.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    public init(certificateFile: String, privateKeyFile: String, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            Certificate.certificates(in: SecurityFile.contents(of: certificateFile), named: certificateFile),
            Self.key(in: SecurityFile.contents(of: privateKeyFile), passphrase, named: privateKeyFile),
            named: certificateFile)
    }

    /// Creates an identity from files, whose content is as in ``init(certificate:privateKey:passphrase:)``.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    public init(certificateFile: URL, privateKeyFile: URL, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            certificateFile: SecurityFile.path(of: certificateFile), privateKeyFile: SecurityFile.path(of: privateKeyFile),
            passphrase: passphrase)
    }

    /// Creates an identity from a PKCS#12 container (`.p12`, `.pfx`).
    ///
    /// Old programs encrypt containers with RC2. OpenSSL 3 decrypts these only if its legacy provider is installed and active.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the container cannot be parsed or decrypted.
    public init(pkcs12: Data, passphrase: String) throws(HTTPSessionError) {
        try self.init(pkcs12: pkcs12, passphrase: passphrase, named: "the PKCS#12 data")
    }

    /// Creates an identity from a PKCS#12 file, as ``init(pkcs12:passphrase:)`` does.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    public init(pkcs12File: String, passphrase: String) throws(HTTPSessionError) {
        try self.init(pkcs12: SecurityFile.contents(of: pkcs12File), passphrase: passphrase, named: pkcs12File)
    }

    /// Creates an identity from a PKCS#12 file, as ``init(pkcs12:passphrase:)`` does.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    public init(pkcs12File: URL, passphrase: String) throws(HTTPSessionError) {
        try self.init(pkcs12File: SecurityFile.path(of: pkcs12File), passphrase: passphrase)
    }

    private init(pkcs12: Data, passphrase: String, named name: String) throws(HTTPSessionError) {
        let content: (key: PrivateKey, certificates: [X509Certificate])
        do { content = try PrivateKey.open(pkcs12: pkcs12, passphrase: passphrase, named: name) } catch {
            throw HTTPSessionError(error)
        }
        try self.init(content.certificates.map(Certificate.init), content.key, named: name)
    }

    private init(_ certificates: [Certificate], _ key: PrivateKey, named name: String) throws(HTTPSessionError) {
        guard let own = certificates.first, key.belongs(to: own.x509) else {
            throw HTTPSessionError(.invalidConfiguration, "the private key does not belong to the certificate of \(name)")
        }
        self.key = key
        certificate = own
        chain = Array(certificates.dropFirst())
    }

    private static func key(in pem: Data, _ passphrase: String?, named name: String) throws(HTTPSessionError) -> PrivateKey {
        do { return try PrivateKey(pem: pem, passphrase: passphrase, named: name) } catch { throw HTTPSessionError(error) }
    }

    /// Sets the certificates and the key on an SSL_CTX. - Returns: whether OpenSSL accepts them.
    func install(on context: OpaquePointer) -> Bool {
        key.use(for: certificate.x509, chain: chain.map(\.x509), on: context)
    }

    /// Whether both have the same certificates, and so the same key.
    public static func == (left: Self, right: Self) -> Bool {
        left.certificate == right.certificate && left.chain == right.chain
    }

    /// Hashes the certificate.
    public func hash(into hasher: inout Hasher) { hasher.combine(certificate) }

    /// The subject of the certificate.
    public var description: String { "ClientIdentity(\(certificate.subject))" }
    /// The subject of the certificate.
    public var debugDescription: String { description }
    /// The subject of the certificate, so that `dump` does not print the key.
    public var customMirror: Mirror { Mirror(self, children: ["certificate": certificate.subject]) }
}
