internal import CLinux
internal import Glibc

/// A file that one task of one process locks (flock(2)). The lock ends with the descriptor, also if the process is killed.
package enum LockedFile {
    package enum Opening {
        /// The file is open and locked. `isNew`: this call has created it.
        case opened(Int32, isNew: Bool)
        /// The file is not used, for this reason: another user may have created it, or can write to it.
        case refused(String)
    }

    /// Opens or creates a file and locks it.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotWriteFile`` if other users may write to the file, or if it is locked (`EWOULDBLOCK` in
    ///   `systemError`).
    package static func open(_ path: String) throws(HTTPSessionError) -> Int32 {
        switch try attempt(path) {
        case .opened(let descriptor, _): return descriptor
        case .refused(let reason): throw HTTPSessionError(.cannotWriteFile, "'\(path)' is not used: \(reason)")
        }
    }

    /// Opens or creates a file and locks it, as ``open(_:)`` does, but returns the reason for a file that is not used.
    package static func attempt(_ path: String) throws(HTTPSessionError) -> Opening {
        // Between open and flock, the task that held the lock may have renamed or removed the file. Then the path is tried again.
        for _ in 0..<100 {
            let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
            var descriptor = Glibc.open(path, flags | O_CREAT | O_EXCL, 0o600)
            let isNew = descriptor >= 0
            if !isNew {
                guard errno == EEXIST else { throw FileFailure.writing(path, errno) }
                // A FIFO, a link or a file of another user is not opened.
                if let reason = OwnFile.objection(at: path) { return .refused(reason) }
                descriptor = Glibc.open(path, flags)
                if descriptor < 0 {
                    if errno == ENOENT || errno == ELOOP { continue }
                    throw FileFailure.writing(path, errno)
                }
                // The file may have been replaced since that check.
                if let reason = OwnFile.objection(to: descriptor) {
                    close(descriptor)
                    return .refused(reason)
                }
                // Whoever can read the file could lock it.
                OwnFile.makePrivate(descriptor)
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let number = errno
                close(descriptor)
                guard number == EWOULDBLOCK else { throw FileFailure.writing(path, number) }
                throw HTTPSessionError(
                    .cannotWriteFile, "'\(path)' is already being downloaded", context: .init(systemError: number))
            }
            if OwnFile.isFile(descriptor, at: path) { return .opened(descriptor, isNew: isNew) }
            close(descriptor)
        }
        throw FileFailure.writing(path, EBUSY)
    }
}
