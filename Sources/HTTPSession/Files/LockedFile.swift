internal import CLinux
internal import Glibc

/// A file that one task of one process has for itself (flock(2)); the lock goes with the descriptor, also when the process is killed.
package enum LockedFile {
    package enum Opening {
        /// `isNew`: this call has created it.
        case opened(Int32, isNew: Bool)
        /// Another user may have put it there, or can write to it: it is untouched, and this is the reason.
        case refused(String)
    }

    /// Opens the file, or makes it. One that is not the user's alone, or that another has, is an error; of the latter `systemError` is
    /// `EWOULDBLOCK`.
    package static func open(_ path: String) throws(HTTPSessionError) -> Int32 {
        switch try attempt(path) {
        case .opened(let descriptor, _): return descriptor
        case .refused(let reason): throw HTTPSessionError(.cannotWriteFile, "'\(path)' is not used: \(reason)")
        }
    }

    package static func attempt(_ path: String) throws(HTTPSessionError) -> Opening {
        // Whoever had it may have given it its name or removed it in between: then another file is there, or none.
        for _ in 0..<100 {
            let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
            var descriptor = Glibc.open(path, flags | O_CREAT | O_EXCL, 0o600)
            let isNew = descriptor >= 0
            if !isNew {
                guard errno == EEXIST else { throw FileFailure.writing(path, errno) }
                // A FIFO, a link or somebody else's file is not even opened.
                if let reason = OwnFile.objection(at: path) { return .refused(reason) }
                descriptor = Glibc.open(path, flags)
                if descriptor < 0 {
                    if errno == ENOENT || errno == ELOOP { continue }
                    throw FileFailure.writing(path, errno)
                }
                // Another one may be there since.
                if let reason = OwnFile.objection(to: descriptor) {
                    close(descriptor)
                    return .refused(reason)
                }
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let number = errno
                close(descriptor)
                guard number == EWOULDBLOCK else { throw FileFailure.writing(path, number) }
                throw HTTPSessionError(
                    .cannotWriteFile, "'\(path)' is being downloaded already", context: .init(systemError: number))
            }
            if OwnFile.isFile(descriptor, at: path) { return .opened(descriptor, isNew: isNew) }
            close(descriptor)
        }
        throw FileFailure.writing(path, EBUSY)
    }
}
