import CLinux
import Glibc

/// Detects possible changes of the resolver's configuration without polling (inotify(7)).
///
/// Every directory on the path to the file is watched for entries that are created, deleted or renamed, and the file itself for
/// writes. This covers replacement by rename, deletion, a changed link, and directories that are created later.
///
/// A write counts when the writer closes the file. Until then the file is often empty, and a resolver that disappears for a
/// millisecond is not a change. A file system that is mounted over the path causes no event.
package struct ResolverWatcher: ~Copyable {
    /// The inotify descriptor, owned by this value. When it is readable, call ``drain()``.
    package let descriptor: Int32
    /// The watched file.
    package let file: ResolverFile
    /// Whether every watch was placed. False if the user's limit of watches is reached, or a directory cannot be read.
    package private(set) var isComplete = true

    /// The relevant entries of each watch. A watch of the file itself has no entries, and all its events are relevant.
    private var watches: [Int32: Set<String>] = [:]

    private static let directoryMask = UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
    private static let fileMask = UInt32(IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
    /// The size of struct inotify_event without its name.
    private static let headerSize = 16
    /// The maximum number of buffers per call; each holds about 128 events.
    private static let readLimit = 64

    /// Creates a watcher. Read the file after creating the watcher: a change in between is then noticed twice rather than not at
    /// all.
    package init(_ file: ResolverFile) throws(MonitorError) {
        let descriptor = inotify_init1(netwatch_IN_FLAGS)
        guard descriptor >= 0 else { throw .system(call: "inotify_init1", errno: errno) }
        self.descriptor = descriptor
        self.file = file
        placeWatches()
    }

    deinit { close(descriptor) }

    /// Reads and parses the file.
    package func read() -> ResolverConfiguration { file.read() }

    /// Reads the queued events and returns whether any of them is relevant, so that the file must be read again. Never blocks.
    /// Reads at most 64 buffers; remaining events keep ``descriptor`` readable.
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
                if isRelevantEvent(watch: watch, mask: mask, name: String(decoding: name, as: UTF8.self)) { isRelevant = true }
                offset += Self.headerSize + length
            }
        }
        if isRelevant { placeWatches() }
        return isRelevant
    }

    private func isRelevantEvent(watch: Int32, mask: UInt32, name: String) -> Bool {
        if mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // A removed watch sends a last event (IN_IGNORED), which is ignored too.
        guard let names = watches[watch] else { return false }
        // An event without a name concerns the watched file or directory itself.
        return name.isEmpty || names.contains(name)
    }

    /// Follows the path again and watches its present entries. An entry that is already watched keeps its watch.
    private mutating func placeWatches() {
        var placed: [Int32: Set<String>] = [:]
        var isComplete = true
        for candidate in file.candidates {
            let path = file.resolve(candidate) { step in
                let watch = inotify_add_watch(descriptor, step.directory, Self.directoryMask | UInt32(IN_ONLYDIR))
                if watch >= 0 {
                    placed[watch, default: []].insert(step.name)
                } else if errno != ENOENT {
                    // A directory that has just been removed is not an error, because the watch of its parent reports the
                    // removal.
                    isComplete = false
                }
            }
            guard let path else { continue }
            let watch = inotify_add_watch(descriptor, path, Self.fileMask | UInt32(IN_DONT_FOLLOW))
            if watch >= 0 { placed[watch] = [] } else if errno != ENOENT { isComplete = false }
            break
        }
        for watch in watches.keys where placed[watch] == nil { inotify_rm_watch(descriptor, watch) }
        watches = placed
        self.isComplete = isComplete
    }
}
