internal import Certificates
public import FoundationEssentials

/// Certificate revocation lists (RFC 5280 section 5): what authorities have taken back.
///
/// They are read once, here; a program that runs for longer than they are valid makes a new policy of newer ones. A list that has
/// expired, and a certificate whose authority has none among them, refuse the connection: silence is no proof.
public struct RevocationLists: Sendable, Hashable {
    /// Which certificates of a chain must be on no list.
    @nonexhaustive public enum Scope: Sendable, Hashable, Codable {
        /// The server's own, by a list of the authority that issued it.
        case server
        /// All of them, by a list of each authority, the root included.
        case completeChain
    }

    /// The lists in DER.
    public let derBytes: [Data]
    /// Which certificates they are asked for. Default: the server's.
    public var scope: Scope

    /// Lists in DER or PEM. None at all, or what does not parse, is an `invalidConfiguration` error.
    public init(_ data: Data, scope: Scope = .server) throws(HTTPSessionError) {
        derBytes = try Self.lists(in: data, named: "the data")
        self.scope = scope
    }

    /// Lists of files, DER or PEM. What cannot be read or parsed is an `invalidConfiguration` error that names the file.
    public init(files paths: [String], scope: Scope = .server) throws(HTTPSessionError) {
        var lists: [Data] = []
        for path in paths {
            lists += try Self.lists(in: SecurityFile.contents(of: path), named: path)
        }
        try self.init(lists, scope: scope)
    }

    /// Lists in DER or PEM.
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
