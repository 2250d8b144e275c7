import CLinux
import Glibc

/// Which resolv.conf applies to a namespace, and what it says now.
///
/// The way to the file is walked component by component, because each directory and each symbolic link on it may be replaced,
/// and whoever watches the file must know them all. (/etc/resolv.conf is often a link into /run, made late in the boot.)
package struct ResolverFile: Hashable, Sendable {
    /// The limit in bytes of what is read of a file. A resolv.conf has some 100 bytes; glibc reads lines of any length, so one that somebody's
    /// script has made very long must not hide the lines behind it.
    package static let sizeLimit = 4 << 20
    /// As many links as the kernel follows (path_resolution(7)).
    private static let linkLimit = 40

    /// The paths to try, below ``root``; the first that exists counts.
    package let candidates: [String]
    /// The directory that stands for `/`; absolute links lead below it too.
    package let root: String

    /// The file of a namespace that ip-netns(8) knows by name, where it has one of its own; else the file of the machine.
    package init(namespaceName: String? = nil, root: String = "/") {
        // A name such as `..` never comes here from NetworkNamespace, but it would lead out of /etc/netns.
        let own = namespaceName.flatMap { $0.contains("/") || $0 == ".." ? nil : ["/etc/netns/\($0)/resolv.conf"] }
        candidates = (own ?? []) + ["/etc/resolv.conf"]
        self.root = root == "/" ? "" : root
    }

    /// An entry of a directory that decides where the way leads, whether or not it exists.
    struct Step: Hashable {
        var directory: String
        var name: String
    }

    /// Reads and understands the file. One that cannot be read counts as absent.
    package func read() -> ResolverConfiguration {
        let path = candidates.lazy.compactMap { resolve($0) }.first
        return path.flatMap(Self.contents).map { ResolverConfiguration(parsing: $0) } ?? ResolverConfiguration()
    }

    /// The regular file that `path` leads to, free of links. Calls `onStep` with each entry on the way before it is looked at, so
    /// that a watch placed then misses nothing.
    func resolve(_ path: String, onStep: (Step) -> Void = { _ in }) -> String? {
        var here = ""
        var ahead = path.split(separator: "/").map(String.init)[...]
        var linksLeft = Self.linkLimit
        while let name = ahead.popFirst() {
            if name == "." { continue }
            if name == ".." {
                here = here.lastIndex(of: "/").map { String(here[..<$0]) } ?? ""
                continue
            }
            let directory = root + here
            onStep(Step(directory: directory.isEmpty ? "/" : directory, name: name))

            let entry = directory + "/" + name
            var status = stat()
            guard lstat(entry, &status) == 0 else { return nil }
            switch status.st_mode & S_IFMT {
            case S_IFLNK:
                linksLeft -= 1
                guard linksLeft >= 0, let target = Self.target(of: entry) else { return nil }
                if target.hasPrefix("/") { here = "" }
                ahead = (target.split(separator: "/").map(String.init) + ahead)[...]
            case S_IFDIR: here += "/" + name
            case S_IFREG: return ahead.isEmpty ? entry : nil
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

    /// The file's bytes; of one that is longer than ``sizeLimit``, its beginning up to the last whole line.
    private static func contents(of path: String) -> [UInt8]? {
        // O_NONBLOCK: should a pipe have taken the file's place meanwhile, opening it must not wait for a writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < sizeLimit {
            let count = piece.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return bytes }
            bytes += piece.prefix(count)
        }
        return bytes.lastIndex(of: UInt8(ascii: "\n")).map { Array(bytes[...$0]) } ?? []
    }
}
