/// Why certificates, keys, authorities or ciphers cannot be used as they were given.
package enum CertificateError: Error, Hashable, Sendable {
    /// What was given does not parse, or does not fit together: a sentence without a capital and a full stop.
    case invalid(String)
    /// What the environment variable names has no certificate. `systemError`: why it cannot be read, or 0 if it can.
    case noAuthorities(variable: String, path: String, systemError: Int32)
    /// OpenSSL knows no cipher of the list.
    case unknownCiphers(String)
    /// OpenSSL does not know all cipher suites of the list.
    case unknownCipherSuites(String)
}
