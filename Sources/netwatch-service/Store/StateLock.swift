import EventLoop
import Glibc

/// The lock of a state directory, which one process has.
///
/// The file `lock` names that process. The directory itself is locked too (flock(2)), because another program may remove the file.
final class StateLock: Sendable {
    private let file: LockFile
    private let descriptor: Locked<Int32>

    /// Locks a state directory.
    ///
    /// - Throws: ``StoreError`` with ``StoreError/Code/inUse`` if another process has the lock.
    init(_ directory: StateDirectory) throws(StoreError) {
        let path = "\(directory.path)/lock"
        do throws(LockFile.Failure) {
            file = try LockFile(path) { StateFile.isRegular($0) ? nil : "not a file; remove it, or choose another --state" }
        } catch {
            switch error {
            case .system(let number): throw StoreError(.refused, "\(path): \(SystemText.of(number))")
            case .refused(let reason): throw StoreError(.refused, "\(path): \(reason)")
            case .inUse(let process): throw Self.inUse(directory, process.map { "process \($0)" } ?? "another process")
            }
        }
        let opened = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let number = errno
        descriptor = Locked(opened)
        guard opened >= 0 else { throw StoreError(.refused, "\(directory.path): \(SystemText.of(number))") }
        // A file system that locks no directories leaves the lock of the file.
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            unlock()
            throw Self.inUse(directory, "another process")
        }
    }

    /// Releases the lock.
    func unlock() {
        file.unlock()
        let descriptor = descriptor.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
        guard descriptor >= 0 else { return }
        // Closing is not enough: a forked child that has not yet called execve(2) has the directory open too.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    deinit { unlock() }

    private static func inUse(_ directory: StateDirectory, _ owner: String) -> StoreError {
        StoreError(.inUse, "\(directory.path): \(owner) keeps its history here; stop it, or choose another --state")
    }
}
