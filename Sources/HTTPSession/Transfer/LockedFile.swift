internal import CLinux
internal import Glibc

/// A file that one task of one process has for itself (flock(2)); the lock goes with the descriptor, also when the process is killed.
package enum LockedFile {
    /// Opens the file, or makes it. One that another has is an error whose `systemError` is `EWOULDBLOCK`.
    package static func open(_ path: String, mode: UInt32) throws(HTTPSessionError) -> Int32 {
        // Whoever had it may have given it its name or removed it in between: then another file is there, or none.
        for _ in 0..<100 {
            let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode)
            guard descriptor >= 0 else { throw FileFailure.writing(path, errno) }
            var (here, there) = (stat(), stat())
            guard fstat(descriptor, &here) == 0, here.st_mode & S_IFMT == S_IFREG else {
                close(descriptor)
                throw HTTPSessionError(.cannotWriteFile, "'\(path)' is no regular file")
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let number = errno
                close(descriptor)
                guard number == EWOULDBLOCK else { throw FileFailure.writing(path, number) }
                throw HTTPSessionError(
                    .cannotWriteFile, "'\(path)' is being downloaded already", context: .init(systemError: number))
            }
            if lstat(path, &there) == 0, here.st_ino == there.st_ino, here.st_dev == there.st_dev { return descriptor }
            close(descriptor)
        }
        throw FileFailure.writing(path, EBUSY)
    }
}
