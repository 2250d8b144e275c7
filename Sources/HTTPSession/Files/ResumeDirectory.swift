internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// Where a session keeps what its resume data stands for: a record for each, which names the part of a file. Resume data itself is a
/// random name and no path, so that nobody who hands it in can point to a file.
struct ResumeDirectory: Hashable, Sendable {
    /// So many are kept at most, and so long: then the oldest go with their parts.
    static let maximumRecords = 1_000
    static let maximumAge: TimeInterval = 7 * 86_400

    let url: URL

    /// One unfinished download.
    struct Record: Hashable, Sendable {
        let id: String
        /// The part's path.
        let part: String
        /// What was asked for at first.
        let start: URL
    }

    private struct Stored: Codable {
        var version = 1
        var part: String
        var start: String
    }

    private static let mark = "netwatch-resume-1:"

    private func path(_ id: String) -> String { url.appendingPathComponent("\(id).resume").path }

    /// Keeps the part, under the name that it had if it had one. - Returns: resume data; `nil` where it could not be written.
    func keep(_ part: String, start: URL, under record: Record?) -> Data? {
        let id = record?.id ?? Data((0..<16).map { _ in UInt8.random(in: 0 ... .max) }).hexadecimal
        let stored = Stored(part: part, start: start.absoluteString)
        do {
            // Only its owner may look into it.
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

    /// What resume data stands for.
    func record(of data: Data) throws(HTTPSessionError) -> Record {
        let text = String(decoding: data.prefix(100), as: UTF8.self)
        let id = text.dropFirst(ResumeDirectory.mark.count)
        guard text.hasPrefix(ResumeDirectory.mark), id.utf8.count == 32, id.utf8.allSatisfy({ $0.isHexadecimalDigit }) else {
            throw HTTPSessionError(.cannotResume, "this is no resume data of this version")
        }
        guard let record = try read(String(id)) else {
            throw HTTPSessionError(.cannotResume, "what the resume data stands for is not in '\(url.path)' any more")
        }
        return record
    }

    private func read(_ id: String) throws(HTTPSessionError) -> Record? {
        guard let data = try SmallFile.read(path(id)), let stored = try? JSONDecoder().decode(Stored.self, from: data),
            stored.version == 1, let start = URL(string: stored.start)
        else { return nil }
        return Record(id: id, part: stored.part, start: start)
    }

    func hasPart(_ record: Record) -> Bool { access(record.part, R_OK | W_OK) == 0 }

    /// The download is whole, or of no use.
    func remove(_ record: Record) { unlink(path(record.id)) }

    /// Removes what is too old and too many.
    private func prune() {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: url.path) else { return }
        let records = names.filter { $0.hasSuffix(".resume") }.map { name in
            let file = url.appending(path: name)
            var found = stat()
            let isThere = lstat(file.path, &found) == 0
            return (file, changed: isThere ? Double(found.st_mtim.tv_sec) + Double(found.st_mtim.tv_nsec) / 1e9 : 0)
        }.sorted { $0.changed > $1.changed }
        let limit = Date().timeIntervalSince1970 - ResumeDirectory.maximumAge
        for (index, (file, changed)) in records.enumerated() where index >= ResumeDirectory.maximumRecords || changed < limit {
            forget(file)
        }
    }

    private func forget(_ file: URL) {
        if let record = try? read(file.deletingPathExtension().lastPathComponent) {
            // One that is being continued now is not old.
            guard let descriptor = try? LockedFile.open(record.part) else { return }
            unlink(record.part)
            SidecarFile.remove(besides: record.part)
            close(descriptor)
        }
        unlink(file.path)
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool { (0x30...0x39).contains(self) || (0x61...0x66).contains(self) }
}
