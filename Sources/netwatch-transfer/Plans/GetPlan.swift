import ByteComparison
import Console
import FoundationEssentials
import HTTPSession

/// The plan of `get`: the downloads and their files, made before the first request and without reading the disk.
struct GetPlan: Hashable {
    struct Item: Hashable {
        var url: URL
        /// The URL as the user wrote it, without user and password.
        var address: String
        /// The path of the file; if the server names it, the path from which the partial file's name is made.
        var file: String
        /// The name for people, which is also the file's name if the server suggests none.
        var name: String
        var digest: ContentDigest?
        /// The size in bytes of an existing file with the digest, which is complete; otherwise `nil`.
        var presentSize: Int64?
    }

    var items: [Item]
    /// The directory for the files, if the user named one. It is created if it is missing.
    var directory: String?
    var restarts = false
    /// Whether `Content-Disposition` names the files. Existing files are never replaced then.
    let isNamedByServer: Bool

    init(
        urls: [String], output: String? = nil, directory: String? = nil, sha256: String? = nil, isNamedByServer: Bool = false
    ) throws(Failure) {
        guard !urls.isEmpty else { throw .usage("get", "the URL is missing; see 'netwatch get --help'") }
        guard output == nil || directory == nil else { throw .usage("-o -d", "they exclude each other") }
        if output != nil, isNamedByServer {
            throw .usage("-o --content-disposition", "they exclude each other: either you name the file, or its server does")
        }
        if urls.count > 1 {
            if output != nil { throw .usage("-o", "it names one file, but there are \(urls.count) URLs; use -d") }
            if sha256 != nil { throw .usage("--sha256", "it is the digest of one file, but there are \(urls.count) URLs") }
        }
        if let output, output.isEmpty || output == "-" {
            throw .usage("-o '\(output)'", "write the name of a file; nothing can be continued on standard output")
        }
        if directory?.isEmpty == true { throw .usage("-d ''", "write the name of a directory") }
        let digest = try sha256.map { (text) throws(Failure) -> ContentDigest in
            guard let digest = ContentDigest(sha256: text) else {
                throw .usage("--sha256 '\(text)'", "write 64 hexadecimal digits, as sha256sum prints them")
            }
            return digest
        }
        self.directory = directory
        self.isNamedByServer = isNamedByServer
        items = []
        for text in urls {
            let url = try TransferAddress.url(text)
            let address = TransferAddress.withoutUser(text)
            let name = output.map { String($0.split(separator: "/").last ?? "") } ?? FileName.of(url)
            // If the servers name the files, the paths of two URLs may have the same last component.
            let own = isNamedByServer ? "\(name).\(GetPlan.mark(of: address))" : name
            let file = output ?? directory.map { "\($0.hasSuffix("/") ? $0 : "\($0)/")\(own)" } ?? own
            if let other = items.first(where: { $0.file.isExactly(file) }) {
                throw .usage(
                    "get",
                    isNamedByServer
                        ? "\(ShortURL.text(address)) is given twice"
                        : "\(ShortURL.text(other.address)) and \(ShortURL.text(address)) would both be '\(file)'; download them one by one with -o"
                )
            }
            items.append(Item(url: url, address: address, file: file, name: name, digest: digest))
        }
    }

    /// Returns eight hexadecimal digits that distinguish a URL from others.
    private static func mark(of address: String) -> String {
        String((ContentDigest.sha256(of: Data(address.utf8))?.hexadecimal ?? "").prefix(8))
    }
}
