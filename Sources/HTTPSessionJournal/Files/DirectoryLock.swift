internal import EventLoop
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The exclusive lock on the directory of one identifier.
final class DirectoryLock: Sendable {
    let path: String
    private let file: LockFile

    /// Creates the directory if it is missing, readable by its owner only, and locks it.
    init(_ path: String, identifier: String) throws(DurableSessionError) {
        self.path = path
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw DurableSessionError(.journalFailed, "cannot create '\(path)'", underlying: error)
        }
        if let reason = OwnFile.objection(at: path, .directory) {
            throw DurableSessionError(.journalFailed, "'\(path)' is not used: \(reason)")
        }
        HiddenFile.syncAncestors(of: path)
        let lock = "\(path)/lock"
        do throws(LockFile.Failure) {
            file = try LockFile(lock) { OwnFile.objection(to: $0) }
        } catch {
            switch error {
            case .system(let number): throw DurableSessionError(.journalFailed, "'\(lock)': \(String(cString: strerror(number)))")
            case .refused(let reason): throw DurableSessionError(.journalFailed, "'\(lock)' is not used: \(reason)")
            case .inUse(let process):
                let owner = process.map { "process \($0)" } ?? "another session"
                throw DurableSessionError(.inUse, "\(owner) has the durable session '\(identifier)' open ('\(path)')")
            }
        }
    }

    func unlock() { file.unlock() }
}
