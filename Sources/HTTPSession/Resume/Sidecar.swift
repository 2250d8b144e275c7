internal import FoundationEssentials

/// The description of a partial file, stored beside it as one JSON object. It alone decides which of the file's bytes are valid.
///
/// It is on the disk before the first byte of its version, so that no byte is mistaken for one of another version.
struct Sidecar: Hashable, Sendable {
    /// The representation that the bytes belong to.
    var resumption: Resumption
    /// The requested URL, before redirects; without user and password.
    var start: URL
    /// The boot in which it was written (/proc/sys/kernel/random/boot_id). Bytes written in the current boot are present even if
    /// the program crashed.
    var boot: String
    /// The number of bytes that are certainly on the disk, even after a crash of the machine.
    var synced: Int64 = 0
    /// The file name that the server has suggested; `nil` if it has not, or if the destination does not use one.
    var suggestedName: String?

    /// The version of the format that this code writes. A newer one is not read.
    static let version = 1

    /// The number of valid bytes in a file of `length` bytes, in the boot `boot`.
    func validBytes(of length: Int64, boot: String) -> Int64 {
        // If the kernel gives no boot identifier, no two boots count as equal.
        let valid = !boot.isEmpty && self.boot == boot ? length : min(length, synced)
        // A file longer than the complete representation was written by another program.
        return valid <= resumption.total ?? .max ? valid : 0
    }

    enum ReadingError: Error, Hashable {
        /// The data is not a sidecar, or is damaged.
        case damaged
        /// The data has a newer version of the format.
        case newer(Int)
    }

    // The names in the stored JSON. They do not follow the encodings of `URL` and other types.
    private struct Stored: Codable {
        var version: Int
        var url: String
        var start: String
        var entity_tag: String?
        var last_modified: String?
        var total: Int64?
        var digest: ContentDigest?
        var boot: String
        var synced: Int64
        var suggested_name: String?
    }

    private struct StoredVersion: Codable {
        var version: Int
    }

    func encoded() throws -> Data {
        var stored = Stored(
            version: Sidecar.version, url: resumption.url.absoluteString, start: start.absoluteString, total: resumption.total,
            digest: resumption.digest, boot: boot, synced: synced, suggested_name: suggestedName)
        switch resumption.validator {
        case .entityTag(let tag): stored.entity_tag = tag
        case .lastModified(let date): stored.last_modified = date
        case nil: break
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(stored)
    }
}

extension Sidecar {
    init(decoding data: Data) throws(ReadingError) {
        guard let version = try? JSONDecoder().decode(StoredVersion.self, from: data).version, version >= 1 else {
            throw .damaged
        }
        guard version <= Sidecar.version else { throw .newer(version) }
        guard let stored = try? JSONDecoder().decode(Stored.self, from: data), let url = URL(string: stored.url),
            let start = URL(string: stored.start), stored.synced >= 0, stored.total ?? 0 >= 0
        else { throw .damaged }
        // A validator is sent to a server, so it has to be one that a server can send.
        var validator: StrongValidator?
        if let tag = stored.entity_tag {
            guard let known = StrongValidator(entityTag: tag) else { throw .damaged }
            validator = known
        } else if let date = stored.last_modified {
            guard let known = StrongValidator(lastModified: date) else { throw .damaged }
            validator = known
        }
        guard
            let resumption = Resumption(
                url: url, validator: validator, total: stored.total, digest: stored.digest)
        else { throw .damaged }
        self.init(
            resumption: resumption, start: start, boot: stored.boot, synced: stored.synced, suggestedName: stored.suggested_name)
    }
}
