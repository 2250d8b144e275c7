internal import FoundationEssentials

/// What lies beside the part of a file and alone says which of its bytes are valid: JSON, one object.
///
/// It is on the disk before the first byte of its version is, so that no byte is ever taken for one of another version.
struct Sidecar: Hashable, Sendable {
    /// What the bytes are the beginning of.
    var resumption: Resumption
    /// What was asked for, before redirects; without user and password.
    var start: URL
    /// Of the system's run in which it was written (/proc/sys/kernel/random/boot_id): what a program has written in this run is there,
    /// whether or not the program lives.
    var boot: String
    /// So many bytes are on the disk, whatever happened to the machine.
    var synced: Int64 = 0
    /// The name that the server has suggested for the file; `nil`: none, or nobody asks for one.
    var suggestedName: String?

    /// The format that this code writes; a newer one is not read.
    static let version = 1

    /// How many bytes of a file of `length` are valid in the run `boot`.
    func validBytes(of length: Int64, boot: String) -> Int64 {
        // Where the kernel does not tell, no two runs are known to be one.
        let valid = !boot.isEmpty && self.boot == boot ? length : min(length, synced)
        // What is longer than the whole has been written by somebody else.
        return valid <= resumption.total ?? .max ? valid : 0
    }

    enum ReadingError: Error, Hashable {
        /// It is none, or none any more.
        case damaged
        /// Of a version that comes after this one.
        case newer(Int)
    }

    // The names on the disk; `URL` and the rest have no say in them.
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
        // A validator returns to a server: one that no server sends is the word of somebody else.
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
