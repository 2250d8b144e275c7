internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// A small file that is replaced in one step. After a power loss it has either the old or the new content.
package enum SmallFile {
    /// The largest size that is read, in bytes. A larger file was not written by this library.
    static let maximumSize = 1 << 20

    /// Reads a file; `nil` if there is none, and empty data for a file above ``maximumSize``.
    static func read(_ path: String) throws(HTTPSessionError) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw FileFailure.reading(path, errno)
        }
        defer { close(descriptor) }
        var found = stat()
        if let reason = OwnFile.objection(to: descriptor) {
            throw HTTPSessionError(.cannotReadFile, "'\(path)' is not used: \(reason)")
        }
        guard fstat(descriptor, &found) == 0, found.st_size <= maximumSize else {
            return Data()
        }
        do { return Data(try DescriptorContents.read(descriptor, atMost: Int(found.st_size))) } catch {
            throw FileFailure.reading(path, error.number)
        }
    }

    /// Replaces a file in one step. Only its owner can read it, because URLs may contain secrets.
    static func replace(_ path: String, with data: Data) throws(HTTPSessionError) {
        let file = PartialFile(DownloadDestination(URL(fileURLWithPath: path), existingFile: .replace), mode: 0o600)
        do throws(HTTPSessionError) {
            try file.begin(expected: nil)
            try file.write([UInt8](data))
            _ = try file.commit()
        } catch {
            file.discard()
            throw error
        }
        syncDirectory(of: path)
    }

    /// Syncs the directory of a file, so that a new name survives a power loss. Errors are ignored: some file systems cannot sync directories.
    package static func syncDirectory(of path: String) {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
