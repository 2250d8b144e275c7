internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The extended attribute of a finished file that stores its ``FileValidator`` (`man 7 xattr`).
enum ValidatorAttribute {
    static let name = "user.netwatch.validator"

    /// Adds the attribute to a file after its last byte is written. It is no error if the file system has no attributes, or no space for one.
    static func write(_ sidecar: Sidecar, to descriptor: Int32) {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { return }
        guard let data = FileValidator(sidecar, size: Int64(found.st_size), modified: modified(found))?.encoded() else { return }
        _ = data.withUnsafeBytes { fsetxattr(descriptor, name, $0.baseAddress, $0.count, 0) }
    }

    /// The attribute of the file at a path; `nil` if it has none, if the file has changed since, or if another user may have changed it.
    static func read(_ path: String) -> FileValidator? {
        guard let descriptor = FinishedFile.open(path) else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: FileValidator.maximumSize)
        let count = fgetxattr(descriptor, name, &buffer, buffer.count)
        var found = stat()
        guard count > 0, let known = FileValidator(decoding: Data(buffer.prefix(count))), fstat(descriptor, &found) == 0,
            known.size == Int64(found.st_size), known.modified == modified(found)
        else { return nil }
        return known
    }

    private static func modified(_ found: stat) -> Int64 {
        Int64(found.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_mtim.tv_nsec)
    }
}
