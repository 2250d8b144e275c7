internal import CLinux
internal import EventLoop
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The exclusive lock on the directory of one identifier (flock(2)). The kernel releases it when its process ends.
final class DirectoryLock: Sendable {
    let path: String
    private let descriptor: Locked<Int32>

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
        let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw DurableSessionError(.journalFailed, "'\(lock)': \(String(cString: strerror(errno)))")
        }
        if let reason = OwnFile.objection(to: descriptor) {
            close(descriptor)
            throw DurableSessionError(.journalFailed, "'\(lock)' is not used: \(reason)")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            var text = [UInt8](repeating: 0, count: 20)
            let count = max(0, pread(descriptor, &text, text.count, 0))
            close(descriptor)
            guard number == EWOULDBLOCK else {
                throw DurableSessionError(.journalFailed, "'\(lock)': \(String(cString: strerror(number)))")
            }
            let owner = Int32(String(decoding: text[..<count], as: UTF8.self)).map { "process \($0)" } ?? "another session"
            throw DurableSessionError(.inUse, "\(owner) has the durable session '\(identifier)' open ('\(path)')")
        }
        // The error of the next process names this one.
        let text = Array("\(getpid())".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
        self.descriptor = Locked(descriptor)
    }

    func unlock() {
        let descriptor = descriptor.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
        guard descriptor >= 0 else { return }
        // Closing is not enough: a forked child that has not yet called execve(2) has the file open too.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    deinit { unlock() }
}
