internal import CLinux
internal import Glibc

/// A small file of the system that is read again when it has changed.
///
/// The first path that exists is used, so that a namespace's own file replaces that of the machine (ip-netns(8)).
struct SystemFile {
    /// The maximum number of bytes that are read.
    private static let sizeLimit = 16 << 20

    private struct Stamp: Equatable {
        let device, inode: UInt64
        let size: Int64
        let modified, changed: Int64
    }

    private let paths: [String]
    private var stamp: Stamp?
    private var isRead = false

    /// Creates the file `/etc/NAME`, or `/etc/netns/NAMESPACE/NAME`.
    init(_ name: String, directory: String?) {
        paths = (directory.map { ["\($0)/\(name)"] } ?? []) + ["/etc/\(name)"]
    }

    /// Returns the contents if they may have changed since the last call; otherwise `nil`. A missing file is empty.
    mutating func readIfChanged() -> [UInt8]? {
        let found = paths.lazy.compactMap { path in Self.stamp(of: path).map { (path, $0) } }.first
        guard !isRead || stamp != found?.1 else { return nil }
        (isRead, stamp) = (true, found?.1)
        return found.map { Self.contents(of: $0.0) } ?? []
    }

    private static func stamp(of path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        func nanoseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) }
        return Stamp(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            modified: nanoseconds(status.st_mtim), changed: nanoseconds(status.st_ctim))
    }

    /// Returns the bytes of a file, at most 16 MiB; none if it cannot be read.
    static func contents(of path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < sizeLimit {
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return bytes
    }
}
