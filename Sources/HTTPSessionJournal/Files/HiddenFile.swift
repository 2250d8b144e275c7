internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The complete file of a download, until the journal has the end of its task.
///
/// It lies beside the destination under a hidden name made of the task's identifier, so that every process finds it. The partial file lies
/// beside it, as for every download that keeps its partial file.
struct HiddenFile: Sendable {
    let path: String
    private let intended: Intent.Destination

    init(of id: String, for destination: Intent.Destination) {
        intended = destination
        let target = URL(fileURLWithPath: destination.file)
        // The names of the partial file and its sidecar are longer, and may have 255 bytes (NAME_MAX).
        let stem = String(decoding: target.lastPathComponent.utf8.prefix(120), as: UTF8.self)
        path = target.deletingLastPathComponent().appendingPathComponent(".\(stem).\(id)").path
    }

    /// The destination of the session's transfer.
    var download: DownloadDestination {
        DownloadDestination(
            URL(fileURLWithPath: path), existingFile: .replace, createsDirectories: intended.createsDirectories,
            partialFile: .keep, expectedDigest: intended.digest)
    }

    /// The identity of the regular file at a path; `nil` if there is none.
    static func identity(_ path: String) -> FileIdentity? {
        var found = stat()
        guard lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileIdentity(
            inode: UInt64(found.st_ino), size: Int64(found.st_size),
            modified: Int64(found.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_mtim.tv_nsec))
    }

    /// The identities of the hidden file and of the destination, which may also be something other than a regular file.
    var identities: (hiddenFile: FileIdentity?, destination: FileIdentity?) {
        var found = stat()
        guard lstat(intended.file, &found) == 0 else { return (HiddenFile.identity(path), nil) }
        return (
            HiddenFile.identity(path),
            HiddenFile.identity(intended.file) ?? FileIdentity(inode: UInt64(found.st_ino), size: -1, modified: 0)
        )
    }

    /// Writes the directory to the disk, so that the file's name survives a power loss.
    func sync() {
        if intended.createsDirectories { HiddenFile.syncAncestors(of: path) } else { SmallFile.syncDirectory(of: path) }
    }

    /// Writes all parent directories to the disk, because some of them may be new.
    static func syncAncestors(of path: String) {
        var entry = URL(fileURLWithPath: path).standardizedFileURL
        while entry.pathComponents.count > 1 {
            SmallFile.syncDirectory(of: entry.path)
            entry.deleteLastPathComponent()
        }
    }

    /// Moves the file to its destination. If a process ended between link(2) and unlink(2), it has both names already.
    func place() throws(HTTPSessionError) {
        let (hidden, destination) = identities
        if let hidden, hidden == destination {
            unlink(path)
        } else {
            try FileMove.move(
                path,
                to: DownloadDestination(
                    URL(fileURLWithPath: intended.file), existingFile: intended.replaces ? .replace : .fail))
        }
        sync()
    }

    /// Removes the hidden file, the partial file and its sidecar. `afterKill` also removes the temporary file of a process that was killed
    /// while it wrote a sidecar, for which the directory is read.
    func clean(afterKill: Bool) {
        let partialFile = path + DownloadDestination.partialFileSuffix
        for path in [path, partialFile, SidecarFile.path(of: partialFile)] { unlink(path) }
        guard afterKill else { return }
        let url = URL(fileURLWithPath: path)
        let (directory, name) = (url.deletingLastPathComponent().path, url.lastPathComponent)
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        where entry.hasPrefix(".\(name)\(DownloadDestination.partialFileSuffix)") { unlink("\(directory)/\(entry)") }
    }
}
