import Foundation
import Glibc
import MemoryCertificates
import NetworkLab

/// The certificates that a server sends, and its key, in PEM.
struct ServerIdentity: Sendable {
    /// The server's certificate, followed by the others that it sends.
    let chain: String
    /// The key of the server's certificate.
    let key: String
}

/// An authority with an intermediate authority, which the client of a network trusts.
final class LaboratoryAuthority {
    /// The options of the program that trusts this authority.
    static let options = ["--cafile", "/etc/\(rootFile)"]
    /// The options of the program that also knows the revoked certificates.
    static let optionsWithRevocations = options + ["--crlfile", "/etc/\(revocationFile)"]

    private static let rootFile = "laboratory-root.pem"
    private static let revocationFile = "laboratory-revoked.crl"

    private let root: MemoryCertificate
    private let intermediate: MemoryCertificate
    private let network: FaultNetwork

    /// Creates the authority, and writes its certificate to the client's /etc.
    init(_ network: FaultNetwork) throws {
        self.network = network
        root = try MemoryCertificate("Laboratory Root", isAuthority: true)
        intermediate = try MemoryCertificate("Laboratory Intermediate", issuer: root, isAuthority: true)
        try write(Data(try root.pem.utf8), Self.rootFile)
    }

    /// Creates a certificate of the intermediate authority, by default for the site's server.
    ///
    /// - Parameters:
    ///   - names: the alternative names, such as `DNS:server.example` and `IP:203.0.113.9`.
    ///   - days: the validity, in days from now.
    ///   - sendsIntermediate: whether the server sends the intermediate authority's certificate too.
    ///   - isRevoked: whether the revocation list on the client has the certificate.
    /// - Returns: The identity of the server.
    /// - Throws: an error if OpenSSL or the file fails.
    func identity(
        names: [String] = Fault.serverNames, days: ClosedRange<Int> = -1...100, sendsIntermediate: Bool = true,
        isRevoked: Bool = false
    ) throws -> ServerIdentity {
        let leaf = try MemoryCertificate("server", issuer: intermediate, names: names, days: days)
        if isRevoked { try write(try intermediate.revocationList(of: [leaf]), Self.revocationFile) }
        return ServerIdentity(
            chain: try leaf.pem + (sendsIntermediate ? try intermediate.pem : ""), key: try leaf.keyPEM)
    }

    /// The signer of a stapled response.
    enum Responder {
        case issuer
        /// A responder to which the issuer delegates the signing.
        case delegate
        /// An authority with the issuer's name, which nobody knows.
        case stranger
    }

    /// Creates a certificate of the intermediate authority, with an OCSP response.
    ///
    /// - Parameters:
    ///   - status: the status of the certificate in the response.
    ///   - responder: the signer of the response.
    ///   - hours: the validity of the response, in hours from now.
    /// - Returns: The identity of the server, and the response.
    /// - Throws: an error if OpenSSL fails.
    func identity(
        _ status: MemoryCertificate.OCSPStatus, says responder: Responder, hours: ClosedRange<Int> = -1...24
    ) throws -> (ServerIdentity, response: Data) {
        let leaf = try MemoryCertificate("server", issuer: intermediate, names: Fault.serverNames)
        let signer =
            switch responder {
            case .issuer: intermediate
            case .delegate: try MemoryCertificate("Laboratory Responder", issuer: intermediate, isResponder: true)
            case .stranger: try MemoryCertificate("Laboratory Intermediate", isAuthority: true)
            }
        let response = try signer.response(status, for: leaf, of: intermediate, hours: hours)
        return (ServerIdentity(chain: try leaf.pem + intermediate.pem, key: try leaf.keyPEM), response)
    }

    /// Creates a certificate of the intermediate authority, which the root revokes, although the client also trusts it itself.
    ///
    /// - Returns: The identity of the server.
    /// - Throws: an error if OpenSSL or the file fails.
    func identityOfRevokedAuthority() throws -> ServerIdentity {
        try write(Data((root.pem + intermediate.pem).utf8), Self.rootFile)
        let lists = try [intermediate.revocationList(of: []), root.revocationList(of: [intermediate])].map { list in
            "-----BEGIN X509 CRL-----\n\(list.base64EncodedString(options: .lineLength64Characters))\n-----END X509 CRL-----\n"
        }
        try write(Data(lists.joined().utf8), Self.revocationFile)
        return try identity()
    }

    /// Creates a certificate of the intermediate authority, with another one whose exponent is as long as its modulus.
    func identityWithCostlyKey() throws -> ServerIdentity {
        let costly = try MemoryCertificate(
            "Laboratory Intermediate", issuer: root, isAuthority: true, publicKey: .rsa(bits: 3072, exponentBits: 3071))
        let identity = try identity()
        return ServerIdentity(chain: identity.chain + (try costly.pem), key: identity.key)
    }

    /// Creates a certificate that no authority of the client has signed.
    static func unknownIdentity(
        names: [String] = Fault.serverNames, days: ClosedRange<Int> = -1...100
    ) throws -> ServerIdentity {
        let other = try MemoryCertificate("Other Root", isAuthority: true)
        let leaf = try MemoryCertificate("server", issuer: other, names: names, days: days)
        return ServerIdentity(chain: try leaf.pem + other.pem, key: try leaf.keyPEM)
    }

    private func write(_ contents: Data, _ name: String) throws {
        let path = "\(network.etc.path)/\(name)"
        try contents.write(to: URL(fileURLWithPath: path))
        chmod(path, 0o644)
    }
}
