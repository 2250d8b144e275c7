import CLinux
import Glibc

/// The resolv.conf that applies to a namespace, and its present contents.
///
/// The path to the file is followed component by component. Each directory and each symbolic link on the path may be replaced,
/// and a watcher must know all of them. (/etc/resolv.conf is often a link into /run, created late during boot.)
package struct ResolverFile: Hashable, Sendable {
    /// The maximum number of bytes that are read from the file. A resolv.conf has about 100 bytes. glibc reads lines of any
    /// length, so a very long line must not hide the lines after it.
    package static let sizeLimit = 4 << 20
    /// The maximum number of symbolic links, equal to the kernel's (path_resolution(7)).
    private static let linkLimit = 40

    /// The paths to try, below ``root``; the first one that exists is used.
    package let candidates: [String]
    /// The directory that is used as `/`; absolute links start there too.
    package let root: String

    /// Creates the file of a namespace that ip-netns(8) knows by name, if that namespace has its own file; otherwise the file of
    /// the machine.
    package init(namespaceName: String? = nil, root: String = "/") {
        // NetworkNamespace never passes a name such as `..`, but the name would lead out of /etc/netns.
        let own = namespaceName.flatMap { $0.contains("/") || $0 == ".." ? nil : ["/etc/netns/\($0)/resolv.conf"] }
        candidates = (own ?? []) + ["/etc/resolv.conf"]
        self.root = root == "/" ? "" : root
    }

    /// A directory entry on the path, whether or not the entry exists.
    struct Step: Hashable {
        var directory: String
        var name: String
    }

    /// Reads and parses the file. A file that cannot be read counts as absent.
    package func read() -> ResolverConfiguration {
        let path = candidates.lazy.compactMap { resolve($0) }.first
        return path.flatMap(Self.contents).map { ResolverConfiguration(parsing: $0) } ?? ResolverConfiguration()
    }

    /// Returns the regular file to which `path` leads, without links. Calls `onStep` with each entry on the path before the entry
    /// is read, so that a watch placed in the call misses no change.
    func resolve(_ path: String, onStep: (Step) -> Void = { _ in }) -> String? {
        var resolved = ""
        var remaining = path.split(separator: "/").map(String.init)[...]
        var linksLeft = Self.linkLimit
        while let name = remaining.popFirst() {
            if name == "." { continue }
            if name == ".." {
                resolved = resolved.lastIndex(of: "/").map { String(resolved[..<$0]) } ?? ""
                continue
            }
            let directory = root + resolved
            onStep(Step(directory: directory.isEmpty ? "/" : directory, name: name))

            let entry = directory + "/" + name
            var status = stat()
            guard lstat(entry, &status) == 0 else { return nil }
            switch status.st_mode & S_IFMT {
            case S_IFLNK:
                linksLeft -= 1
                guard linksLeft >= 0, let target = Self.target(of: entry) else { return nil }
                if target.hasPrefix("/") { resolved = "" }
                remaining = (target.split(separator: "/").map(String.init) + remaining)[...]
            case S_IFDIR: resolved += "/" + name
            case S_IFREG: return remaining.isEmpty ? entry : nil
            default: return nil
            }
        }
        return nil
    }

    private static func target(of link: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }

    /// Returns the file's bytes. If the file is longer than ``sizeLimit``, returns its beginning, up to the last complete line.
    private static func contents(of path: String) -> [UInt8]? {
        // O_NONBLOCK: if a pipe has replaced the file in the meantime, opening it must not wait for a writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < sizeLimit {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
        }
        return bytes.lastIndex(of: UInt8(ascii: "\n")).map { Array(bytes[...$0]) } ?? []
    }
}
