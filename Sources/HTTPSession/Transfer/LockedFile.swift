internal import CLinux
internal import Foundation
internal import Glibc

/// A file that one task of one process has for itself (flock(2)); the lock goes with the descriptor, also when the process is killed.
enum LockedFile {
    /// Opens the file, or makes it.
    static func open(_ path: String, mode: mode_t) throws(HTTPSessionError) -> Int32 {
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

/// Gives a file its name.
package enum FileMove {
    package static func move(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) {
        let target = destination.file.path
        switch destination.existingFile {
        case .replace:
            if rename(path, target) == 0 { return }
        case .fail:
            // link(2) never replaces; where a file system has no links, a look and a rename must do.
            if link(path, target) == 0 {
                unlink(path)
                return
            }
            if FileMove.isWithoutLinks(errno) {
                try PartialFile.check(destination)
                if rename(path, target) == 0 { return }
            }
        }
        guard errno == EXDEV else { throw FileFailure.moving(target, errno) }
        try copy(path, to: destination)
        unlink(path)
    }

    /// What link(2) says where there are no links, or not another of this file: FAT, many FUSE and network file systems, and a mount of
    /// the same file system at another place.
    static func isWithoutLinks(_ number: Int32) -> Bool {
        [EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EXDEV].contains(number)
    }

    /// To another file system: there too the name is given in one step.
    private static func copy(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) {
        let source = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard source >= 0 else { throw FileFailure.reading(path, errno) }
        defer { close(source) }
        let file = PartialFile(destination)
        do throws(HTTPSessionError) {
            try file.begin(expected: Int64(lseek(source, 0, SEEK_END)))
            lseek(source, 0, SEEK_SET)
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            while true {
                let count = read(source, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw FileFailure.reading(path, errno) }
                if count == 0 { break }
                try file.write(count == buffer.count ? buffer : Array(buffer[..<count]))
            }
            _ = try file.commit()
        } catch {
            file.discard()
            throw error
        }
    }
}
