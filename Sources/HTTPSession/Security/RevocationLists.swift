internal import Certificates
public import FoundationEssentials

/// Certificate revocation lists (RFC 5280 section 5).
///
/// Lists are read once, when this value is created. A program that runs for longer than they are valid creates a new policy with newer lists. The
/// connection is refused if a list has expired, or if there is no list of the authority that issued a certificate.
public struct RevocationLists: Sendable, Hashable {
    /// The certificates of a chain that are checked.
    @nonexhaustive public enum Scope: Sendable, Hashable, Codable {
        /// The server's certificate, by a list of the authority that issued it.
        case server
        /// All certificates of the chain, by a list of each authority, including the root.
        case completeChain
    }

    /// The lists in DER.
    public let derBytes: [Data]
    /// The certificates that are checked; ``Scope/server`` by default.
    public var scope: Scope

    /// Parses lists in DER or PEM.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` if the data has no list or cannot be parsed.
    public init(_ data: Data, scope: Scope = .server) throws(HTTPSessionError) {
        derBytes = try Self.lists(in: data, named: "the data")
        self.scope = scope
    }

    /// Reads lists from files in DER or PEM.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file, if it cannot be read or parsed.
    public init(files paths: [String], scope: Scope = .server) throws(HTTPSessionError) {
        var lists: [Data] = []
        for path in paths {
            lists += try Self.lists(in: SecurityFile.contents(of: path), named: path)
        }
        try self.init(lists, scope: scope)
    }

    /// Reads lists from files in DER or PEM.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file, if it cannot be read or parsed.
    public init(files: [URL], scope: Scope = .server) throws(HTTPSessionError) {
        var paths: [String] = []
        for file in files { paths.append(try SecurityFile.path(of: file)) }
        try self.init(files: paths, scope: scope)
    }

    /// Parses lists in DER or PEM.
    init(_ data: [Data], scope: Scope) throws(HTTPSessionError) {
        var lists: [Data] = []
        for data in data { lists += try Self.lists(in: data, named: "the data") }
        guard !lists.isEmpty else { throw HTTPSessionError(.invalidConfiguration, "no revocation list is given") }
        derBytes = lists
        self.scope = scope
    }

    private static func lists(in data: Data, named name: String) throws(HTTPSessionError) -> [Data] {
        do { return try CertificateDecoding.revocationLists(in: data, named: name) } catch { throw HTTPSessionError(error) }
    }
}
