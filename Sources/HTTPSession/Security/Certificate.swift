internal import Certificates
public import FoundationEssentials

/// An X.509 certificate, which is pinned, trusted as an authority, or presented by a server.
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
    let x509: X509Certificate

    init(_ x509: X509Certificate) { self.x509 = x509 }

    /// The certificate in DER.
    public var derBytes: Data { x509.derBytes }
    /// The name of the subject on one line (RFC 2253), such as `CN=example.com,O=Example`.
    public var subject: String { x509.subject }
    /// The pin of the certificate's public key.
    public var publicKeyPin: PublicKeyPin { PublicKeyPin(of: x509) }

    /// Parses one certificate in DER or PEM.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the data has no certificate, more than one, or cannot be parsed.
    public init(_ data: Data) throws(HTTPSessionError) {
        let certificates = try Self.all(in: data)
        guard let first = certificates.first, certificates.count == 1 else {
            throw HTTPSessionError(.invalidConfiguration, "one certificate is expected, and the data has \(certificates.count)")
        }
        self = first
    }

    /// Parses the certificates of `data`: one in DER, or any number in PEM, in their order.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the data has no certificate or cannot be parsed.
    public static func all(in data: Data) throws(HTTPSessionError) -> [Certificate] {
        try certificates(in: data, named: "the data")
    }

    /// Reads the certificates of a file in DER or PEM, in their order.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file, if it cannot be read or parsed.
    public static func all(inFile path: String) throws(HTTPSessionError) -> [Certificate] {
        try certificates(in: SecurityFile.contents(of: path), named: path)
    }

    /// Reads the certificates of a file in DER or PEM, in their order.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file, if it cannot be read or parsed.
    public static func all(inFile file: URL) throws(HTTPSessionError) -> [Certificate] {
        try all(inFile: SecurityFile.path(of: file))
    }

    static func certificates(in data: Data, named name: String) throws(HTTPSessionError) -> [Certificate] {
        do { return try CertificateDecoding.certificates(in: data, named: name).map(Certificate.init) } catch {
            throw HTTPSessionError(error)
        }
    }

    /// Reads the certificates of all files `*.cer`, `*.crt`, `*.pem` and `*.der` in a directory, without its subdirectories.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the directory or the file, if it cannot be read or parsed.
    public static func all(inDirectory path: String) throws(HTTPSessionError) -> Set<Certificate> {
        var certificates: Set<Certificate> = []
        for file in try SecurityFile.names(in: path, extensions: ["cer", "crt", "pem", "der"]) {
            certificates.formUnion(try all(inFile: file))
        }
        return certificates
    }

    /// The pin and the subject, as a line for a list of pins.
    public var description: String { "\(publicKeyPin) \(subject)" }
}
