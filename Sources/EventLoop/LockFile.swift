internal import CLinux
internal import Glibc

/// A file or a directory whose exclusive lock one process has (flock(2)). The kernel releases the lock when the process ends.
package final class LockFile: Sendable {
    /// The reason why the lock was not taken.
    package enum Failure: Error, Hashable, Sendable {
        /// The file cannot be opened or locked.
        case system(errno: Int32)
        /// The check of the opened file has refused it.
        case refused(String)
        /// Another process has the lock. Its number is `nil` if it is not known.
        case inUse(process: Int32?)
    }

    private let descriptor: Locked<Int32>

    /// Opens the file, or creates it, and locks it. A symbolic link is not followed.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - mode: the permissions of a new file.
    ///   - objection: returns the reason why an opened file is not used; `nil` if it is.
    /// - Throws: ``Failure``.
    package init(
        _ path: String, mode: UInt32 = 0o600, objection: (Int32) -> String? = { _ in nil }
    ) throws(Failure) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode_t(mode))
        guard descriptor >= 0 else { throw .system(errno: errno) }
        if let reason = objection(descriptor) {
            close(descriptor)
            throw .refused(reason)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            var text = [UInt8](repeating: 0, count: 20)
            let count = max(0, pread(descriptor, &text, text.count, 0))
            close(descriptor)
            guard number == EWOULDBLOCK else { throw .system(errno: number) }
            throw .inUse(process: Int32(String(decoding: text[..<count], as: UTF8.self)))
        }
        // The error of the next process names this one.
        let text = Array("\(getpid())".utf8)
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
        self.descriptor = Locked(descriptor)
    }

    /// Opens a directory, and locks it if its file system locks directories. Unlike a file in it, another program cannot remove it and
    /// leave the directory in use.
    ///
    /// - Throws: ``Failure``; a directory has no number of the process.
    package init(directory path: String) throws(Failure) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno: errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            close(descriptor)
            throw .inUse(process: nil)
        }
        self.descriptor = Locked(descriptor)
    }

    /// Releases the lock and closes the file.
    package func unlock() {
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
