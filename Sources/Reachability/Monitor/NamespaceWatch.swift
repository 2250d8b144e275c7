internal import CLinux
internal import EventLoop
internal import Glibc

/// Tells when a namespace loses its name: the kernel sends nothing then, and the namespace lives on in whoever holds a socket of it.
///
/// A file is watched through its directory (inotify(7)), a path below /proc/PID through that process (pidfd_open(2)).
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
        let parts = path.split(separator: "/")
        if parts.count > 2, parts[0] == "proc", let process = Int32(parts[1]) {
            descriptor = netwatch_pidfd_open(process)
            watchesProcess = true
            guard descriptor >= 0 else { return nil }
            return
        }
        watchesProcess = false
        descriptor = inotify_init1(netwatch_IN_FLAGS)
        guard descriptor >= 0 else { return nil }
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let mask = UInt32(IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_UNMOUNT | IN_CREATE | IN_ATTRIB)
        guard inotify_add_watch(descriptor, directory.isEmpty ? "/" : directory, mask) >= 0 else {
            close(descriptor)
            return nil
        }
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
