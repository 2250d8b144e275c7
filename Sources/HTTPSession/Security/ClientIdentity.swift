internal import Certificates
public import FoundationEssentials

/// The certificate by which this side says who it is, with its private key.
///
/// What is printed of it, dumped or logged is the certificate's subject, never the key.
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let key: PrivateKey
    /// The certificate.
    public let certificate: Certificate
    /// The certificates that are sent behind it, its issuer first.
    public let chain: [Certificate]

    /// A certificate with its chain (PEM or DER) and a private key (PEM, PKCS#8 or traditional, encrypted or not).
    ///
    /// `invalidConfiguration` is thrown when one of them cannot be parsed, the passphrase does not open the key, or the key is not
    /// the certificate's.
    public init(certificate: Data, privateKey: Data, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            Certificate.certificates(in: certificate, named: "the client certificate"),
            Self.key(in: privateKey, passphrase, named: "the private key"), named: "the client certificate")
    }

    /// The same from files. The error names the file at fault.
    public init(certificateFile: String, privateKeyFile: String, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            Certificate.certificates(in: SecurityFile.contents(of: certificateFile), named: certificateFile),
            Self.key(in: SecurityFile.contents(of: privateKeyFile), passphrase, named: privateKeyFile),
            named: certificateFile)
    }

    /// A PKCS#12 container (`.p12`, `.pfx`). Those encrypted with RC2, as old programs write them, OpenSSL 3 opens only where its
    /// legacy provider is installed and active.
    public init(pkcs12: Data, passphrase: String) throws(HTTPSessionError) {
        try self.init(pkcs12: pkcs12, passphrase: passphrase, named: "the PKCS#12 data")
    }

    /// A PKCS#12 file. The error names it.
    public init(pkcs12File: String, passphrase: String) throws(HTTPSessionError) {
        try self.init(pkcs12: SecurityFile.contents(of: pkcs12File), passphrase: passphrase, named: pkcs12File)
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
            throw HTTPSessionError(.invalidConfiguration, "the private key is not that of the certificate of \(name)")
        }
        self.key = key
        certificate = own
        chain = Array(certificates.dropFirst())
    }

    private static func key(in pem: Data, _ passphrase: String?, named name: String) throws(HTTPSessionError) -> PrivateKey {
        do { return try PrivateKey(pem: pem, passphrase: passphrase, named: name) } catch { throw HTTPSessionError(error) }
    }

    /// Gives the certificates and the key to an SSL_CTX. - Returns: whether OpenSSL takes them.
    func isTaken(by context: OpaquePointer) -> Bool {
        key.use(for: certificate.x509, chain: chain.map(\.x509), on: context)
    }

    /// The same certificates, and so the same key.
    public static func == (left: Self, right: Self) -> Bool {
        left.certificate == right.certificate && left.chain == right.chain
    }

    /// By the certificate.
    public func hash(into hasher: inout Hasher) { hasher.combine(certificate) }

    /// The certificate's subject.
    public var description: String { "ClientIdentity(\(certificate.subject))" }
    /// The certificate's subject.
    public var debugDescription: String { description }
    /// The certificate's subject: `dump` sees no key.
    public var customMirror: Mirror { Mirror(self, children: ["certificate": certificate.subject]) }
}
