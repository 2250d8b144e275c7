internal import FoundationEssentials
internal import Glibc

/// The move of a finished file to its destination.
package enum FileMove {
    /// Moves a finished file, which gets the mode and owner of the file that it replaces.
    package static func move(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.moving(path, errno) }
        defer { close(descriptor) }
        try FileAttributes.adopt(descriptor, from: destination.file.path, isFresh: false)
        try move(path, descriptor, to: destination)
    }

    /// Moves the open file, and fails if another file has been put at its path.
    static func move(_ path: String, _ descriptor: Int32, to destination: DownloadDestination) throws(HTTPSessionError) {
        guard OwnFile.isFile(descriptor, at: path) else { throw replaced(path) }
        let isCopied = try renameOrCopy(path, to: destination)
        guard isCopied || OwnFile.isFile(descriptor, at: destination.file.path) else { throw replaced(destination.file.path) }
    }

    private static func replaced(_ path: String) -> HTTPSessionError {
        HTTPSessionError(.cannotMoveFile, "another file has taken the place of '\(path)'")
    }

    /// - Returns: whether the file was copied to another file system.
    private static func renameOrCopy(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) -> Bool {
        let target = destination.file.path
        switch destination.existingFile {
        case .replace:
            if rename(path, target) == 0 { return false }
        case .fail:
            // link(2) never replaces a file. Without links, a check and a rename are the best that is possible.
            if link(path, target) == 0 {
                unlink(path)
                return false
            }
            if FileMove.isWithoutLinks(errno) {
                try destination.check()
                if rename(path, target) == 0 { return false }
            }
        }
        guard errno == EXDEV else { throw FileFailure.moving(target, errno) }
        try copy(path, to: destination)
        unlink(path)
        return true
    }

    /// Whether link(2) failed because the file system has no hard links, or no further one of this file.
    ///
    /// FAT and many FUSE and network file systems have none. A mount of the same file system at another path gives EXDEV.
    static func isWithoutLinks(_ number: Int32) -> Bool {
        [EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EXDEV].contains(number)
    }

    /// Copies the file to another file system. There too the destination gets its name in one step.
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
