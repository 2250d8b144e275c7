internal import CLinux
internal import Foundation
internal import Glibc
internal import HTTPSession

/// The file of a download until its end is in the journal: beside the destination, under a name made of the task's identifier, so that
/// any process finds it. Its part lies beside it, as of any download that is kept (`DownloadDestination.PartialFilePolicy.keep`).
struct HiddenFile: Sendable {
    let path: String
    private let intended: Intent.Destination

    init(of id: String, for destination: Intent.Destination) {
        intended = destination
        let target = URL(fileURLWithPath: destination.file)
        // A name of at most 255 bytes (NAME_MAX), also with what stands behind it for its part and its sidecar.
        let stem = String(decoding: target.lastPathComponent.utf8.prefix(120), as: UTF8.self)
        path = target.deletingLastPathComponent().appendingPathComponent(".\(stem).\(id)").path
    }

    /// Where the session is to download to.
    var download: DownloadDestination {
        DownloadDestination(
            URL(fileURLWithPath: path), existingFile: .replace, createsDirectories: intended.createsDirectories,
            partialFile: .keep, expectedDigest: intended.digest)
    }

    /// `nil` where no regular file is.
    static func mark(_ path: String) -> FileMark? {
        var found = stat()
        guard lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileMark(
            inode: UInt64(found.st_ino), size: Int64(found.st_size),
            modified: Int64(found.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_mtim.tv_nsec))
    }

    /// The hidden file, and the one at the destination: whatever is there is one.
    var surroundings: (hidden: FileMark?, destination: FileMark?) {
        var found = stat()
        guard lstat(intended.file, &found) == 0 else { return (HiddenFile.mark(path), nil) }
        return (
            HiddenFile.mark(path),
            HiddenFile.mark(intended.file) ?? FileMark(inode: UInt64(found.st_ino), size: -1, modified: 0)
        )
    }

    /// So that the name outlives a power loss.
    func sync() {
        if intended.createsDirectories { HiddenFile.syncAncestors(of: path) } else { SmallFile.syncDirectory(of: path) }
    }

    /// So that directories outlive a power loss that may have been made with it.
    static func syncAncestors(of path: String) {
        var entry = URL(fileURLWithPath: path).standardizedFileURL
        while entry.pathComponents.count > 1 {
            SmallFile.syncDirectory(of: entry.path)
            entry.deleteLastPathComponent()
        }
    }

    /// Gives it its name. It may have it already, beside the hidden one (link(2)), when a process has ended between two steps.
    func place() throws(HTTPSessionError) {
        let (hidden, destination) = surroundings
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

    /// Removes what lies under hidden names. `afterKill`: also what a process has left that was killed while it wrote a sidecar, for which
    /// the directory has to be read.
    func clean(afterKill: Bool) {
        let part = path + DownloadDestination.partialFileSuffix
        for path in [path, part, SidecarFile.path(of: part)] { unlink(path) }
        guard afterKill else { return }
        let place = URL(fileURLWithPath: path)
        let (directory, name) = (place.deletingLastPathComponent().path, place.lastPathComponent)
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        where entry.hasPrefix(".\(name)\(DownloadDestination.partialFileSuffix)") { unlink("\(directory)/\(entry)") }
    }
}
