internal import CLinux
internal import Glibc

extension FilePart {
    /// Reads the range, and throws if the file is no longer the same version. - Returns: `false` if the reading was canceled.
    func read(_ body: (UnsafeRawBufferPointer) -> Void, isCancelled: () -> Bool) throws(HTTPSessionError) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.reading(path, errno) }
        defer { close(descriptor) }
        try check(descriptor)
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var position = range.lowerBound
        while position < range.upperBound {
            if isCancelled() { return false }
            let count = pread(descriptor, &buffer, min(buffer.count, Int(range.upperBound - position)), off_t(position))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count < 0 ? FileFailure.reading(path, errno) : FileFailure.changed(path) }
            buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            position += Int64(count)
        }
        try check(descriptor)
        return true
    }

    private func check(_ descriptor: Int32) throws(HTTPSessionError) {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { throw FileFailure.reading(path, errno) }
        guard version == nil || version == FileVersion(found) else { throw FileFailure.changed(path) }
    }
}

extension FileVersion {
    init(_ found: stat) {
        device = UInt64(found.st_dev)
        inode = UInt64(found.st_ino)
        size = Int64(found.st_size)
        modified = Int64(found.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_mtim.tv_nsec)
        changed = Int64(found.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_ctim.tv_nsec)
    }

    /// Whether an open file is unchanged. If its last name was removed, its change time (st_ctime) is ignored, because the removal changes it.
    static func isUnchanged(_ now: stat, since opened: stat) -> Bool {
        var (now, then) = (now, FileVersion(opened))
        if now.st_nlink == 0 { (now.st_ctim, then.changed) = (timespec(), 0) }
        return FileVersion(now) == then
    }

    /// Reads the version of the file at a path; symbolic links are followed.
    package init(_ path: String) throws(HTTPSessionError) {
        var found = stat()
        guard stat(path, &found) == 0 else { throw FileFailure.reading(path, errno) }
        self.init(found)
    }
}
