internal import CLinux
internal import EventLoop
internal import Glibc

/// Detects the removal of a namespace's file. The kernel sends no event for it, and the namespace continues to exist while any
/// process has a socket in it.
///
/// A file, and every symbolic link on the path to it, is watched through its directory (inotify(7)). A path below /proc/PID is
/// watched through that process (pidfd_open(2)).
struct NamespaceWatch: ~Copyable {
    /// A descriptor that is readable when ``isGone()`` should be called.
    let descriptor: Int32
    private let path: String
    private let inode: UInt64
    private let watchesProcess: Bool

    /// Watches the namespace that the calling thread has entered by `path`; `nil` if the path cannot be watched.
    init?(_ path: String, inode: UInt64) {
        self.path = path
        self.inode = inode
        let chain = Self.linkChain(to: path)
        if let process = chain.last.flatMap({ Self.process(of: $0) }) {
            descriptor = netwatch_pidfd_open(process)
            watchesProcess = true
            guard descriptor >= 0 else { return nil }
            return
        }
        watchesProcess = false
        let descriptor = inotify_init1(netwatch_IN_FLAGS)
        self.descriptor = descriptor
        guard descriptor >= 0 else { return nil }
        // IN_MOVED_TO: a file that is renamed over the namespace's file causes no other event in its directory.
        let mask = UInt32(
            IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_CREATE | IN_ATTRIB)
        guard chain.count(where: { inotify_add_watch(descriptor, Self.directory(of: $0), mask) >= 0 }) > 0 else {
            close(descriptor)
            return nil
        }
    }

    /// Returns the path, followed by the target of each symbolic link. The last entry is the file itself, or a path below
    /// /proc/PID, whose links inotify cannot watch.
    private static func linkChain(to path: String) -> [String] {
        var chain = [path]
        // The kernel follows at most 40 links (path_resolution(7)).
        while chain.count <= 40, let last = chain.last, process(of: last) == nil {
            var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(last, &buffer, buffer.count)
            guard count > 0 else { break }
            let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            chain.append(target.hasPrefix("/") ? target : "\(directory(of: last))/\(target)")
        }
        return chain
    }

    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private static func process(of path: String) -> Int32? {
        let parts = path.split(separator: "/")
        guard path.hasPrefix("/"), parts.count > 2, parts[0] == "proc" else { return nil }
        return Int32(parts[1])
    }

    deinit { close(descriptor) }

    /// Reads the queued events, and returns whether the path no longer leads to the namespace.
    func isGone() -> Bool {
        if watchesProcess { return true }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while read(descriptor, &buffer, buffer.count) > 0 {}
        return NamespaceWatch.inode(of: path) != inode
    }

    /// Returns the inode of a namespace's file; 0 if the file does not exist.
    static func inode(of path: String) -> UInt64 {
        var facts = stat()
        return stat(path, &facts) == 0 ? UInt64(facts.st_ino) : 0
    }
}
