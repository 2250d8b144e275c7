internal import CLinux
internal import Certificates
internal import FoundationEssentials
internal import Glibc

/// The check whether a file was finished by an earlier download and can be trusted.
package enum FinishedFile {
    /// The size of the file at a path in bytes; `nil` if other users may write to it, or if it has another digest.
    ///
    /// `isCancelled` is checked before every read of 256 KiB and ends the reading.
    package static func size(at path: String, having digest: ContentDigest, isCancelled: () -> Bool = { false }) -> Int64? {
        guard let descriptor = open(path) else { return nil }
        defer { close(descriptor) }
        var (before, after) = (stat(), stat())
        guard fstat(descriptor, &before) == 0 else { return nil }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
        let size = Int64(before.st_size)
        let found = try? FileDigest.of(descriptor, size, digest.algorithm, path: path, isCancelled: isCancelled)
        guard found == digest, fstat(descriptor, &after) == 0, FileVersion.isUnchanged(after, since: before) else { return nil }
        return size
    }

    /// Opens a regular file that no other user can write to; `nil` if there is none. FIFOs and devices are not opened.
    static func open(_ path: String) -> Int32? {
        guard OwnFile.objection(at: path, .finished) == nil else { return nil }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        guard OwnFile.objection(to: descriptor, .finished) == nil else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}

/// The digest of a file's first bytes.
enum FileDigest {
    /// Reads the first `length` bytes; `nil` if `isCancelled` returns `true`, which is checked before every read of 256 KiB. `path` is for errors.
    static func of(
        _ descriptor: Int32, _ length: Int64, _ algorithm: ContentDigest.Algorithm, path: String, isCancelled: () -> Bool
    ) throws(HTTPSessionError) -> ContentDigest? {
        guard let hasher = algorithm.hasher else {
            throw HTTPSessionError(.transferFailed, "OpenSSL has no \(algorithm.rawValue)")
        }
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var done: Int64 = 0
        while done < length, !isCancelled() {
            let count = pread(descriptor, &buffer, min(buffer.count, Int(length - done)), off_t(done))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileFailure.reading(path, count < 0 ? errno : EIO) }
            buffer.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            done += Int64(count)
        }
        return done == length ? ContentDigest(algorithm, of: hasher) : nil
    }
}
