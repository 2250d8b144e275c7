internal import ByteComparison
internal import FoundationEssentials

/// The version of a finished file: the server's strong validator and the resource that it belongs to. It also has the file's size
/// and modification time at the end of the download.
///
/// A weak entity tag is not stored: it promises an equivalent representation, not the same bytes (RFC 9110 section 8.8.1). URLs
/// are stored as digests, because a URL may be a secret, and everybody who can read the file can read its attributes.
struct FileValidator: Hashable, Sendable {
    let validator: StrongValidator
    /// The digest of the requested URL, before redirects.
    let start: String
    /// The digest of the URL that the validator belongs to, after redirects.
    let resource: String
    /// The file's size in bytes.
    let size: Int64
    /// The file's modification time in nanoseconds since 1970.
    let modified: Int64

    /// The version of a file whose download ended with this sidecar; `nil` if the server sent no strong validator.
    init?(_ sidecar: Sidecar, size: Int64, modified: Int64) {
        guard let validator = sidecar.resumption.validator, let start = FileValidator.digest(start: sidecar.start),
            let resource = FileValidator.digest(sidecar.resumption.url, with: validator)
        else { return nil }
        (self.validator, self.start, self.resource, self.size, self.modified) = (validator, start, resource, size, modified)
    }

    /// Whether a request to `url`, in a download that began at `start`, asks for the file's resource. `start` has to be equal to
    /// the letter. With an entity tag, the query of `url` may differ, as it does in signed URLs.
    func belongs(to url: URL, start: URL) -> Bool {
        FileValidator.digest(start: start) == self.start && FileValidator.digest(url, with: validator) == resource
    }

    /// The field line that asks for the representation unless it is this version (RFC 9110 sections 13.1.2 and 13.1.3).
    var fieldLine: String {
        switch validator {
        case .entityTag(let tag): "If-None-Match: \(tag)"
        case .lastModified(let date): "If-Modified-Since: \(date)"
        }
    }

    /// Whether a 304 (Not Modified) confirms this version. A 304 with another validator does not: a server may compare dates only
    /// by their order (RFC 9110 section 13.1.3).
    func isConfirmed(by head: ResponseHead) -> Bool {
        guard head.statusCode == 304, !head.hasDifferentValues(of: "etag"), !head.hasDifferentValues(of: "last-modified") else {
            return false
        }
        switch validator {
        case .entityTag(let tag): return head.firstValue(of: "etag", isExactly: tag) ?? true
        case .lastModified(let date): return head.firstValue(of: "last-modified", isExactly: date) ?? true
        }
    }

    private static func digest(start url: URL) -> String? { digest(url.withoutUserAndFragment.absoluteString) }

    private static func digest(_ url: URL, with validator: StrongValidator) -> String? {
        var text = "\(url.scheme ?? "")://\(url.host() ?? "")".lowercased()
        if let port = url.port { text += ":\(port)" }
        text += url.path(percentEncoded: true)
        if case .lastModified = validator, let query = url.query(percentEncoded: true) { text += "?\(query)" }
        return digest(text)
    }

    private static func digest(_ text: String) -> String? { ContentDigest.sha256(of: Data(text.utf8))?.hexadecimal }
}

extension FileValidator {
    /// The version of the format that this code writes. Other versions are not read.
    static let version = 1
    /// The largest encoded size, in bytes: some file systems have room for only 4 KiB of attributes.
    static let maximumSize = 2 << 10

    private struct Stored: Codable {
        var version: Int
        var start: String
        var resource: String
        var entity_tag: String?
        var last_modified: String?
        var size: Int64
        var modified: Int64
    }

    /// The JSON object to store; `nil` if it is longer than ``maximumSize``.
    func encoded() -> Data? {
        var stored = Stored(version: FileValidator.version, start: start, resource: resource, size: size, modified: modified)
        switch validator {
        case .entityTag(let tag): stored.entity_tag = tag
        case .lastModified(let date): stored.last_modified = date
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(stored)).flatMap { $0.count <= FileValidator.maximumSize ? $0 : nil }
    }

    /// Parses a stored attribute. Any process may have written it, and the validator is sent to a server, so it has to be one
    /// that a server can send.
    init?(decoding data: Data) {
        guard data.count <= FileValidator.maximumSize, let stored = try? JSONDecoder().decode(Stored.self, from: data),
            stored.version == FileValidator.version, stored.size >= 0
        else { return nil }
        let validator =
            switch (stored.entity_tag, stored.last_modified) {
            case (let tag?, nil): StrongValidator(entityTag: tag)
            case (nil, let date?): StrongValidator(lastModified: date)
            default: StrongValidator?.none
            }
        guard let validator else { return nil }
        (self.validator, start, resource) = (validator, stored.start, stored.resource)
        (size, modified) = (stored.size, stored.modified)
    }
}
