internal import CLinux
internal import Foundation
internal import Glibc

/// A file that is not there until it is whole.
// @unchecked: its fields are touched only by jobs of one worker, which run one after another.
final class PartialFile: @unchecked Sendable {
    private let destination: DownloadDestination
    private let mode: mode_t
    private var descriptor: Int32 = -1
    private var path = ""

    /// `mode`: who may do what with it, less what the process's mask takes away (umask(2)).
    init(_ destination: DownloadDestination, mode: mode_t = 0o666) {
        self.destination = destination
        self.mode = mode
    }

    deinit { discard() }

    /// Makes the temporary file, or empties it; reserves the space where the length is known, so that a full disk shows at once.
    func begin(expected: Int64?) throws(HTTPSessionError) {
        if descriptor < 0 { try create() }
        guard lseek(descriptor, 0, SEEK_SET) == 0, ftruncate(descriptor, 0) == 0 else { throw FileFailure.writing(path, errno) }
        if let expected, expected > 0 {
            // Not every file system can; one that is full says so.
            let number = netwatch_reserve_space(descriptor, expected)
            if number == ENOSPC || number == EFBIG || number == EDQUOT {
                throw FileFailure.writing(destination.file.path, number)
            }
        }
    }

    private func create() throws(HTTPSessionError) {
        let target = destination.file
        if destination.createsDirectories {
            do {
                try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            } catch {
                throw HTTPSessionError(.cannotWriteFile, "cannot make the directory of '\(target.path)'", underlying: error)
            }
        }
        try PartialFile.check(destination)
        // A name of at most 255 bytes (NAME_MAX), however long the destination's is.
        let stem = String(decoding: target.lastPathComponent.utf8.prefix(200), as: UTF8.self)
        let name = ".\(stem).\(String(UInt64.random(in: 0 ... .max), radix: 36)).part"
        path = target.deletingLastPathComponent().appendingPathComponent(name).path
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw FileFailure.writing(path, errno) }
    }

    /// Whether a file could be put there now.
    static func check(_ destination: DownloadDestination) throws(HTTPSessionError) {
        guard destination.file.isFileURL else { throw HTTPSessionError(.cannotWriteFile, "the destination is no file URL") }
        var found = stat()
        guard lstat(destination.file.path, &found) == 0 else { return }
        guard found.st_mode & S_IFMT != S_IFDIR else { throw FileFailure.moving(destination.file.path, EISDIR) }
        if destination.existingFile == .fail { throw FileFailure.moving(destination.file.path, EEXIST) }
    }

    func write(_ bytes: [UInt8]) throws(HTTPSessionError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done) }
            if count > 0 {
                done += count
            } else if count < 0, errno != EINTR {
                throw FileFailure.writing(path, errno)
            }
        }
    }

    /// Syncs the bytes and gives them their name.
    func commit() throws(HTTPSessionError) -> URL {
        if descriptor < 0 { try begin(expected: nil) }
        let end = lseek(descriptor, 0, SEEK_CUR)
        guard end >= 0, ftruncate(descriptor, end) == 0, fdatasync(descriptor) == 0 else {
            throw FileFailure.writing(path, errno)
        }
        let target = destination.file.path
        switch destination.existingFile {
        case .replace:
            guard rename(path, target) == 0 else { throw FileFailure.moving(target, errno) }
        case .fail:
            // link(2) never replaces; where a file system has no links, a look and a rename must do.
            if link(path, target) == 0 {
                unlink(path)
            } else if errno == EPERM || errno == EOPNOTSUPP {
                try PartialFile.check(destination)
                guard rename(path, target) == 0 else { throw FileFailure.moving(target, errno) }
            } else {
                throw FileFailure.moving(target, errno)
            }
        }
        close(descriptor)
        (descriptor, path) = (-1, "")
        return destination.file
    }

    func discard() {
        guard descriptor >= 0 else { return }
        close(descriptor)
        unlink(path)
        (descriptor, path) = (-1, "")
    }
}
