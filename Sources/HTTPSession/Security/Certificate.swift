internal import Certificates
public import FoundationEssentials

/// An X.509 certificate: to pin, to trust, or as a server showed it.
public struct Certificate: Sendable, Hashable, CustomStringConvertible {
    let x509: X509Certificate

    init(_ x509: X509Certificate) { self.x509 = x509 }

    /// The certificate in DER.
    public var derBytes: Data { x509.derBytes }
    /// The subject's name on one line (RFC 2253), such as `CN=example.com,O=Example`.
    public var subject: String { x509.subject }
    /// The pin of its public key.
    public var publicKeyPin: PublicKeyPin { PublicKeyPin(of: x509) }

    /// A certificate in DER or PEM. None, more than one, or what does not parse is an `invalidConfiguration` error.
    public init(_ data: Data) throws(HTTPSessionError) {
        let certificates = try Self.all(in: data)
        guard let first = certificates.first, certificates.count == 1 else {
            throw HTTPSessionError(.invalidConfiguration, "one certificate was expected, \(certificates.count) are there")
        }
        self = first
    }

    /// The certificates of `data`: one in DER, or any number in PEM, in their order. None at all, or what does not parse, is an
    /// `invalidConfiguration` error.
    public static func all(in data: Data) throws(HTTPSessionError) -> [Certificate] {
        try certificates(in: data, named: "the data")
    }

    /// The certificates of a file, DER or PEM, in their order. One that cannot be read or parsed is an `invalidConfiguration`
    /// error that names the file.
    public static func all(inFile path: String) throws(HTTPSessionError) -> [Certificate] {
        try certificates(in: SecurityFile.contents(of: path), named: path)
    }

    static func certificates(in data: Data, named name: String) throws(HTTPSessionError) -> [Certificate] {
        do { return try CertificateDecoding.certificates(in: data, named: name).map(Certificate.init) } catch {
            throw HTTPSessionError(error)
        }
    }

    /// The certificates of every `*.cer`, `*.crt`, `*.pem` and `*.der` of a directory, not of those below it. A directory that
    /// cannot be read, or one file of it that cannot be read or parsed, is an `invalidConfiguration` error that names it.
    public static func all(inDirectory path: String) throws(HTTPSessionError) -> Set<Certificate> {
        var certificates: Set<Certificate> = []
        for file in try SecurityFile.names(in: path, extensions: ["cer", "crt", "pem", "der"]) {
            certificates.formUnion(try all(inFile: file))
        }
        return certificates
    }

    /// The pin and the subject: a line to paste where pins are configured.
    public var description: String { "\(publicKeyPin) \(subject)" }
}
