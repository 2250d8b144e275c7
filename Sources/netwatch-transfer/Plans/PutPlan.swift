import ArgumentParser
import Console
import FoundationEssentials

/// The plan of `put`: the file and its URL, made before the first request and without reading the disk.
struct PutPlan: Hashable {
    /// The upload protocol.
    enum Dialect: String, CaseIterable, ExpressibleByArgument, Codable {
        /// The protocol that the server supports, found by a request.
        case auto
        /// tus 1.0.0.
        case tus
        /// draft-ietf-httpbis-resumable-upload, by PUT.
        case draft
        /// A plain PUT.
        case put
    }

    var file: String
    /// The URL as the user wrote it.
    var url: URL
    /// The URL for people, without user and password.
    var address: String
    var dialect: Dialect
    /// The file's name, for people and servers.
    var name: String
    /// Whether the progress of an earlier run is ignored.
    var restarts = false

    init(file: String, url text: String, dialect: Dialect = .auto) throws(Failure) {
        guard !file.isEmpty else { throw .usage("FILE ''", "write the name of a file") }
        guard file != "-" else {
            throw .usage("FILE '-'", "standard input cannot be sent again after an outage; write it to a file first")
        }
        self.file = file
        url = try TransferAddress.url(text)
        address = TransferAddress.withoutUser(text)
        self.dialect = dialect
        name = String(file.split(separator: "/").last ?? "")
    }

    /// The URL for PUT: if the path ends with a slash, the file's name is appended.
    var target: URL {
        let path = url.path(percentEncoded: true)
        return path.isEmpty || path.hasSuffix("/") ? url.appending(path: name, directoryHint: .notDirectory) : url
    }
}
