import ArgumentParser
import Console
import FoundationEssentials

/// What is to be uploaded, and where to: decided before anything starts, without a look at the disk.
struct PutPlan: Hashable {
    /// How the server is spoken to.
    enum Dialect: String, CaseIterable, ExpressibleByArgument, Codable {
        /// The server is asked first.
        case auto
        /// tus 1.0.0.
        case tus
        /// draft-ietf-httpbis-resumable-upload, by PUT.
        case draft
        /// PUT and nothing else.
        case put
    }

    var file: String
    /// As it was written.
    var url: URL
    /// The same, for people: without user and password.
    var address: String
    var dialect: Dialect
    /// The file's, for people and servers.
    var name: String
    /// Whatever an earlier run has begun.
    var beginsAnew = false

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

    /// Where PUT puts it: into what ends with a slash, under the file's own name.
    var target: URL {
        let path = url.path(percentEncoded: true)
        return path.isEmpty || path.hasSuffix("/") ? url.appending(path: name, directoryHint: .notDirectory) : url
    }
}
