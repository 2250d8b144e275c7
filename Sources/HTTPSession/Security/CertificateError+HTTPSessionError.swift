internal import Certificates
internal import Reachability

extension HTTPSessionError {
    /// Creates an `invalidConfiguration` error for certificates, keys or parameters that cannot be used.
    init(_ error: CertificateError) {
        switch error {
        case .invalid(let reason): self.init(.invalidConfiguration, reason)
        case .unknownCiphers(let list):
            self.init(.invalidConfiguration, "OpenSSL knows no cipher of the list \(excerpt(of: list))")
        case .unknownCipherSuites(let suites):
            self.init(.invalidConfiguration, "OpenSSL does not know all cipher suites of \(excerpt(of: suites))")
        case .noAuthorities(let variable, let path, let number):
            let objection =
                if path.isEmpty {
                    "it is set but empty; unset it to use the system's authorities"
                } else if number != 0 {
                    "cannot read '\(path)': \(errorText(number))"
                } else if variable == "SSL_CERT_DIR" {
                    "'\(path)' has no certificate under the name of its hash; 'openssl rehash' creates these names"
                } else {
                    "'\(path)' has no certificate"
                }
            self.init(
                .invalidConfiguration, "\(variable): \(objection)", context: .init(systemError: number == 0 ? nil : number),
                underlying: MissingAuthoritiesError())
        }
    }
}

/// The underlying error if the environment names certificate authorities that cannot be read.
package struct MissingAuthoritiesError: Error, Hashable {}
