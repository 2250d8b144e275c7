internal import CLinux
internal import EventLoop
internal import Glibc

/// Tells when a namespace loses its name: the kernel sends nothing then, and the namespace lives on in whoever holds a socket of it.
///
/// A file is watched through its directory (inotify(7)), and so is every symbolic link on the way to it; a path below /proc/PID
/// through that process (pidfd_open(2)).
struct NamespaceWatch: ~Copyable {
    /// Readable when ``isGone()`` should be asked.
    let descriptor: Int32
    private let path: String
    private let inode: UInt64
    private let watchesProcess: Bool

    /// Watches the namespace that the calling thread has entered by `path`; `nil` when it cannot be watched.
    init?(_ path: String, inode: UInt64) {
        self.path = path
        self.inode = inode
        let way = Self.way(to: path)
        if let process = way.last.flatMap({ Self.process(of: $0) }) {
            descriptor = netwatch_pidfd_open(process)
            watchesProcess = true
            guard descriptor >= 0 else { return nil }
            return
        }
        watchesProcess = false
        let descriptor = inotify_init1(netwatch_IN_FLAGS)
        self.descriptor = descriptor
        guard descriptor >= 0 else { return nil }
        // IN_MOVED_TO: what is renamed over the file leaves no other trace in its directory.
        let mask = UInt32(
            IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_CREATE | IN_ATTRIB)
        guard way.count(where: { inotify_add_watch(descriptor, Self.directory(of: $0), mask) >= 0 }) > 0 else {
            close(descriptor)
            return nil
        }
    }

    /// The path, and where each symbolic link leads to; the last is the file itself, or a path below /proc/PID, whose links are
    /// none that a directory tells of.
    private static func way(to path: String) -> [String] {
        var way = [path]
        // As many as the kernel follows (path_resolution(7)).
        while way.count <= 40, let last = way.last, process(of: last) == nil {
            var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(last, &buffer, buffer.count)
            guard count > 0 else { break }
            let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            way.append(target.hasPrefix("/") ? target : "\(directory(of: last))/\(target)")
        }
        return way
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

    /// Takes the waiting events and looks whether the path still leads to the namespace.
    func isGone() -> Bool {
        if watchesProcess { return true }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while read(descriptor, &buffer, buffer.count) > 0 {}
        return NamespaceWatch.inode(of: path) != inode
    }

    /// The inode of a namespace's file; 0 when there is none.
    static func inode(of path: String) -> UInt64 {
        var facts = stat()
        return stat(path, &facts) == 0 ? UInt64(facts.st_ino) : 0
    }
}
