internal import FoundationEssentials
internal import Glibc

/// Gives a file its name.
package enum FileMove {
    /// Moves a finished file, which gets the mode and owner of the one that it replaces.
    package static func move(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.moving(path, errno) }
        defer { close(descriptor) }
        try FileAttributes.adopt(descriptor, from: destination.file.path, isFresh: false)
        try move(path, descriptor, to: destination)
    }

    /// Moves the open file, and no other one that somebody puts at its path.
    static func move(_ path: String, _ descriptor: Int32, to destination: DownloadDestination) throws(HTTPSessionError) {
        guard OwnFile.isFile(descriptor, at: path) else { throw stolen(path) }
        let isCopied = try give(path, to: destination)
        guard isCopied || OwnFile.isFile(descriptor, at: destination.file.path) else { throw stolen(destination.file.path) }
    }

    private static func stolen(_ path: String) -> HTTPSessionError {
        HTTPSessionError(.cannotMoveFile, "another file has taken the place of '\(path)'")
    }

    /// - Returns: whether the destination is a copy, on another file system.
    private static func give(_ path: String, to destination: DownloadDestination) throws(HTTPSessionError) -> Bool {
        let target = destination.file.path
        switch destination.existingFile {
        case .replace:
            if rename(path, target) == 0 { return false }
        case .fail:
            // link(2) never replaces; where a file system has no links, a look and a rename must do.
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
