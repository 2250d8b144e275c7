internal import CLinux
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// A file that is written in one step and survives a power loss either as it was or as it is.
package enum SmallFile {
    /// What is longer is none of ours.
    static let maximumSize = 1 << 20

    /// `nil` where there is none.
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

    /// Only its owner may read it: addresses may be secrets.
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

    /// So that a new name outlives a power loss; a file system that cannot do it has nothing better.
    package static func syncDirectory(of path: String) {
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
