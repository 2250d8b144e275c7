import CLinux
import Glibc

/// Tells when the resolver's configuration may have changed, without polling (inotify(7)).
///
/// Watched are every directory on the way to the file, for entries that come, go or are renamed, and the file itself, for writes.
/// That covers the usual replacement by rename, deletion, a link turned elsewhere, and directories that are made later.
/// Writes count when the writer closes the file: in between it is often empty, and a resolver gone for a millisecond is no news.
/// A file system mounted over the way gives no event.
package struct ResolverWatcher: ~Copyable {
    /// To be waited for, for reading; then comes ``drain()``. Owned by this value.
    package let descriptor: Int32
    /// Which file it is.
    package let file: ResolverFile
    /// Whether every watch could be placed; not when the user's limit of watches is met, or a directory may not be read.
    package private(set) var isComplete = true

    /// The names of the entries that matter, by watch; none for the file itself, of which everything matters.
    private var watches: [Int32: Set<String>] = [:]

    private static let ofDirectories = UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    private static let ofFiles = UInt32(IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
    /// struct inotify_event without its name.
    private static let headerSize = 16
    /// Buffers of some 128 events each.
    private static let readLimit = 64

    /// Starts watching. Read the file afterwards: a change between the two is seen by both, never by none.
    package init(_ file: ResolverFile) throws(MonitorError) {
        let descriptor = inotify_init1(netwatch_IN_FLAGS)
        guard descriptor >= 0 else { throw .system(call: "inotify_init1", errno: errno) }
        self.descriptor = descriptor
        self.file = file
        place()
    }

    deinit { close(descriptor) }

    /// What the file says now.
    package func read() -> ResolverConfiguration { file.read() }

    /// Takes the waiting events; whether one of them matters, so that the file is to be read again. Never blocks, and takes at most
    /// 64 buffers: what is left keeps ``descriptor`` readable.
    package mutating func drain() -> Bool {
        var isRelevant = false
        var buffer = [UInt8](repeating: 0, count: 4096)
        for _ in 0..<Self.readLimit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            var offset = 0
            while offset + Self.headerSize <= count {
                let (watch, mask, length) = buffer.withUnsafeBytes {
                    (
                        $0.loadUnaligned(fromByteOffset: offset, as: Int32.self),
                        $0.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self),
                        Int($0.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    )
                }
                let name = buffer[(offset + Self.headerSize)..<min(count, offset + Self.headerSize + length)].prefix { $0 != 0 }
                if matters(watch: watch, mask: mask, name: String(decoding: name, as: UTF8.self)) { isRelevant = true }
                offset += Self.headerSize + length
            }
        }
        if isRelevant { place() }
        return isRelevant
    }

    private func matters(watch: Int32, mask: UInt32, name: String) -> Bool {
        if mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // Also the last word (IN_IGNORED) of a watch that was given up.
        guard let names = watches[watch] else { return false }
        // An event without a name is about the watched thing itself.
        return name.isEmpty || names.contains(name)
    }

    /// Walks the way anew and watches what is on it now. Watching again what is watched keeps its watch.
    private mutating func place() {
        var placed: [Int32: Set<String>] = [:]
        var isComplete = true
        for candidate in file.candidates {
            let path = file.resolve(candidate) { step in
                let watch = inotify_add_watch(descriptor, step.directory, Self.ofDirectories | UInt32(IN_ONLYDIR))
                if watch >= 0 {
                    placed[watch, default: []].insert(step.name)
                } else if errno != ENOENT {
                    // A directory that has just gone is no loss: the watch of its parent tells.
                    isComplete = false
                }
            }
            guard let path else { continue }
            let watch = inotify_add_watch(descriptor, path, Self.ofFiles | UInt32(IN_DONT_FOLLOW))
            if watch >= 0 { placed[watch] = [] } else if errno != ENOENT { isComplete = false }
            break
        }
        for watch in watches.keys where placed[watch] == nil { inotify_rm_watch(descriptor, watch) }
        watches = placed
        self.isComplete = isComplete
    }
}
