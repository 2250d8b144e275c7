internal import CLinux
internal import FoundationEssentials
internal import Glibc

extension DownloadDestination {
    /// Throws ``HTTPSessionError/Code/cannotWriteFile`` if the destination cannot take a file now.
    ///
    /// A symbolic link may be replaced like a file. A directory, a device, a FIFO or a socket is refused, because a rename would remove it.
    package func check() throws(HTTPSessionError) {
        guard file.isFileURL else { throw HTTPSessionError(.cannotWriteFile, "the URL of the destination is not a file URL") }
        // NAME_MAX. The temporary file has a shorter name, so that the error would not appear before the last rename.
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

    /// The reason for a destination that exists and is not a file.
    package static let noFile = "it exists and is not a file"
}
