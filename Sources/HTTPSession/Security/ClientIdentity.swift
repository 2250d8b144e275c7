package import Certificates
public import FoundationEssentials

/// A client certificate with its chain and its private key.
///
/// Its description, its mirror and logs contain the subject of the certificate, never the key.
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    let content: ClientCertificate
    /// The certificate of the client.
    public var certificate: Certificate { Certificate(content.certificate) }
    /// The certificates that are sent after it, its issuer first.
    public var chain: [Certificate] { content.chain.map(Certificate.init) }

    /// Creates an identity from one that has been read.
    package init(_ content: ClientCertificate) { self.content = content }

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
            certificate, named: "the client certificate", key: privateKey, passphrase, named: "the private key")
    }

    /// Creates an identity from files, whose content is as in ``init(certificate:privateKey:passphrase:)``.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    public init(certificateFile: String, privateKeyFile: String, passphrase: String? = nil) throws(HTTPSessionError) {
        try self.init(
            SecurityFile.contents(of: certificateFile), named: certificateFile, key: SecurityFile.contents(of: privateKeyFile),
            passphrase, named: privateKeyFile)
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
        do {
            let (key, certificates) = try PrivateKey.open(pkcs12: pkcs12, passphrase: passphrase, named: name)
            content = try ClientCertificate(certificates, key, named: name)
        } catch { throw HTTPSessionError(error) }
    }

    private init(
        _ certificate: Data, named name: String, key: Data, _ passphrase: String?, named keyName: String
    ) throws(HTTPSessionError) {
        do {
            content = try ClientCertificate(
                CertificateDecoding.certificates(in: certificate, named: name),
                PrivateKey(pem: key, passphrase: passphrase, named: keyName), named: name)
        } catch { throw HTTPSessionError(error) }
    }

    /// Sets the certificates and the key on an SSL_CTX. - Returns: whether OpenSSL accepts them.
    func install(on context: OpaquePointer) -> Bool {
        content.install(on: context)
    }

    /// The subject of the certificate.
    public var description: String { "ClientIdentity(\(certificate.subject))" }
    /// The subject of the certificate.
    public var debugDescription: String { description }
    /// The subject of the certificate, so that `dump` does not print the key.
    public var customMirror: Mirror { Mirror(self, children: ["certificate": certificate.subject]) }
}
