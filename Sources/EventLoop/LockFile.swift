internal import CLinux
internal import Glibc

/// A file whose exclusive lock one process has (flock(2)). The kernel releases the lock when the process ends.
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

    /// Whether the path still leads to the locked file.
    package enum Presence: Hashable, Sendable {
        case present
        /// There is no file at the path.
        case missing
        /// Another file is at the path, whose lock another process may have.
        case replaced
    }

    private let path: String
    private let descriptor: Locked<Int32>

    /// Opens the file, or creates it, and locks it. A symbolic link is not followed.
    ///
    /// Whoever can read a file can lock it, also without write permission. Permissions of other users are therefore removed.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - objection: returns the reason why an opened file is not used; `nil` if it is.
    /// - Throws: ``Failure``.
    package init(_ path: String, objection: (Int32) -> String? = { _ in nil }) throws(Failure) {
        self.path = path
        // Between open(2) and flock(2), the file may have been removed or replaced. Then the path is tried again.
        for _ in 0..<100 {
            let descriptor = try LockFile.locked(path, objection)
            guard LockFile.presence(of: descriptor, at: path) == .present else {
                close(descriptor)
                continue
            }
            // The error of the next process names this one.
            let text = Array("\(getpid())".utf8)
            if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
            self.descriptor = Locked(descriptor)
            return
        }
        throw .system(errno: EBUSY)
    }

    private static func locked(_ path: String, _ objection: (Int32) -> String?) throws(Failure) -> Int32 {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system(errno: errno) }
        if let reason = objection(descriptor) {
            close(descriptor)
            throw .refused(reason)
        }
        LockFile.makePrivate(descriptor)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            var text = [UInt8](repeating: 0, count: 20)
            let count = max(0, pread(descriptor, &text, text.count, 0))
            close(descriptor)
            guard number == EWOULDBLOCK else { throw .system(errno: number) }
            throw .inUse(process: Int32(String(decoding: text[..<count], as: UTF8.self)))
        }
        return descriptor
    }

    /// Removes the permissions of other users from an open file before it is locked. File systems without permissions refuse that, so an error is
    /// ignored.
    package static func makePrivate(_ descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & 0o077 != 0 else { return }
        fchmod(descriptor, status.st_mode & 0o700)
    }

    /// Whether the path still leads to the locked file. While it does not, another process can lock a new file there.
    package var presence: Presence { descriptor.withLock { LockFile.presence(of: $0, at: path) } }

    private static func presence(of descriptor: Int32, at path: String) -> Presence {
        var (opened, found) = (stat(), stat())
        guard lstat(path, &found) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .missing : .replaced }
        let isSame = fstat(descriptor, &opened) == 0 && opened.st_dev == found.st_dev && opened.st_ino == found.st_ino
        return isSame ? .present : .replaced
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
