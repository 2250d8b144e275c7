import Hosts

/// A self-signed certificate and its key, which openssl(1) makes in a work folder. Clients trust it as an authority.
struct SelfSignedCertificate {
    let file: String
    private let key: String

    /// Makes a certificate for the IP addresses.
    init(for addresses: [String], in folder: WorkFolder) throws {
        (file, key) = (folder.file("certificate"), folder.file("key"))
        try Child.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90", "-subj",
            "/CN=benchmark", "-addext", "subjectAltName=\(addresses.map { "IP:\($0)" }.joined(separator: ","))", "-keyout", key,
            "-out", file,
        ])
    }

    /// The lines of nginx's configuration with which its servers present this certificate.
    var configuration: String { "ssl_certificate \(file); ssl_certificate_key \(key);" }
}
