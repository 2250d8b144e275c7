/// The reason why the given certificates, keys, authorities or ciphers cannot be used.
package enum CertificateError: Error, Hashable, Sendable {
    /// The input does not parse, or its parts do not match. The text gives the reason, without a capital letter and a period.
    case invalid(String)
    /// The file or directory that an environment variable names has no certificate. `systemError` is the errno of reading it; 0
    /// if it is readable.
    case noAuthorities(variable: String, path: String, systemError: Int32)
    /// OpenSSL knows no cipher of the list.
    case unknownCiphers(String)
    /// OpenSSL does not know all cipher suites of the list.
    case unknownCipherSuites(String)
}
