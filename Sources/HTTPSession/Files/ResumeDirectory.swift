internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The directory of a session's resume data: one record for each, which names the partial file.
///
/// Resume data itself is a random name and not a path, so that forged resume data cannot name a file.
struct ResumeDirectory: Hashable, Sendable {
    /// The largest number of records; the oldest are removed with their partial files.
    static let maximumRecords = 1_000
    /// The age at which a record is removed with its partial file.
    static let maximumAge: TimeInterval = 7 * 86_400

    let url: URL

    /// The record of one unfinished download.
    struct Record: Hashable, Sendable {
        let id: String
        /// The path of the partial file.
        let partialFile: String
        /// The URL of the first request, before redirects.
        let start: URL
    }

    private struct Stored: Codable {
        var version = 1
        var partialFile: String
        var start: String

        private enum CodingKeys: String, CodingKey {
            case version, start
            case partialFile = "part"
        }
    }

    private static let mark = "netwatch-resume-1:"

    private func path(_ id: String) -> String { url.appendingPathComponent("\(id).resume").path }

    /// Stores a record of a partial file, or replaces `record`. - Returns: resume data; `nil` if the record cannot be written.
    func keep(_ partialFile: String, start: URL, under record: Record?) -> Data? {
        let id = record?.id ?? Data((0..<16).map { _ in UInt8.random(in: 0 ... .max) }).hexadecimal
        let stored = Stored(partialFile: partialFile, start: start.absoluteString)
        do {
            // Readable by its owner only.
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            guard OwnFile.objection(at: url.path, .directory) == nil else { return nil }
            try SmallFile.replace(path(id), with: try JSONEncoder().encode(stored))
        } catch {
            return nil
        }
        prune()
        return Data("\(ResumeDirectory.mark)\(id)".utf8)
    }

    /// The record of resume data.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotResume`` if the data is invalid or its record has been removed.
    func record(of data: Data) throws(HTTPSessionError) -> Record {
        let text = String(decoding: data.prefix(100), as: UTF8.self)
        let id = text.dropFirst(ResumeDirectory.mark.count)
        guard text.hasPrefix(ResumeDirectory.mark), id.utf8.count == 32, id.utf8.allSatisfy({ $0.isHexadecimalDigit }) else {
            throw HTTPSessionError(.cannotResume, "the resume data is invalid, or of another version")
        }
        guard let record = try read(String(id)) else {
            throw HTTPSessionError(.cannotResume, "the record of the resume data is no longer in '\(url.path)'")
        }
        return record
    }

    private func read(_ id: String) throws(HTTPSessionError) -> Record? {
        guard let data = try SmallFile.read(path(id)), let stored = try? JSONDecoder().decode(Stored.self, from: data),
            stored.version == 1, let start = URL(string: stored.start)
        else { return nil }
        return Record(id: id, partialFile: stored.partialFile, start: start)
    }

    func hasPartialFile(_ record: Record) -> Bool { access(record.partialFile, R_OK | W_OK) == 0 }

    /// Removes a record whose download is complete, or cannot be continued.
    func remove(_ record: Record) { unlink(path(record.id)) }

    /// Removes records beyond the limits of age and number.
    private func prune() {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: url.path) else { return }
        let records = names.filter { $0.hasSuffix(".resume") }.map { name in
            let file = url.appending(path: name)
            var found = stat()
            let exists = lstat(file.path, &found) == 0
            return (file, changed: exists ? Double(found.st_mtim.tv_sec) + Double(found.st_mtim.tv_nsec) / 1e9 : 0)
        }.sorted { $0.changed > $1.changed }
        let limit = Date().timeIntervalSince1970 - ResumeDirectory.maximumAge
        for (index, (file, changed)) in records.enumerated() where index >= ResumeDirectory.maximumRecords || changed < limit {
            forget(file)
        }
    }

    private func forget(_ file: URL) {
        if let record = try? read(file.deletingPathExtension().lastPathComponent) {
            // A download that is being continued holds the lock, and its record stays.
            guard let descriptor = try? LockedFile.open(record.partialFile) else { return }
            unlink(record.partialFile)
            SidecarFile.remove(besides: record.partialFile)
            close(descriptor)
        }
        unlink(file.path)
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool { (0x30...0x39).contains(self) || (0x61...0x66).contains(self) }
}
