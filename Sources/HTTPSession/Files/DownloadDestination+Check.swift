internal import CLinux
internal import FoundationEssentials
internal import Glibc

extension DownloadDestination {
    /// Throws ``HTTPSessionError/Code/cannotWriteFile`` where no file could be put there now. A symbolic link is replaced as a file is; of
    /// a directory, a device, a FIFO or a socket nothing would be left.
    package func check() throws(HTTPSessionError) {
        guard file.isFileURL else { throw HTTPSessionError(.cannotWriteFile, "the destination is no file URL") }
        // NAME_MAX. While it comes it has a shorter one, so that nothing else would tell before its end.
        guard file.lastPathComponent.utf8.count <= 255 else { throw FileFailure.placing(file.path, ENAMETOOLONG) }
        var found = stat()
        guard lstat(file.path, &found) == 0 else { return }
        switch found.st_mode & S_IFMT {
        case S_IFREG, S_IFLNK: break
        case S_IFDIR: throw FileFailure.placing(file.path, EISDIR)
        default: throw HTTPSessionError(.cannotWriteFile, "cannot put the file at '\(file.path)': \(DownloadDestination.noFile)")
        }
        if existingFile == .fail { throw FileFailure.placing(file.path, EEXIST) }
    }

    /// Why it may not replace what is there.
    package static let noFile = "it is there, and no file"
}
