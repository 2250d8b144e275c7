import Glibc
import Reachability

/// The program that listens on a TCP port of this machine, for an error message. Other users' programs are visible only to root.
enum PortOwner {
    /// Returns the process, as in `nginx (process 812)`; `nil` if it cannot be known.
    static func find(of address: ListenAddress) -> String? {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            guard let text = Self.text(of: table) else { continue }
            for inode in SocketTable.listeners(in: text, port: address.port) {
                if let owner = process(with: "socket:[\(inode)]") { return owner }
            }
        }
        return nil
    }

    private static func process(with link: String) -> String? {
        for process in names(in: "/proc") where process.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
            for descriptor in names(in: "/proc/\(process)/fd")
            where target(of: "/proc/\(process)/fd/\(descriptor)") == link {
                let name = text(of: "/proc/\(process)/comm")?.split(separator: "\n").first.map(String.init)
                return "\(Self.name(name ?? "?", executable: target(of: "/proc/\(process)/exe"))) (process \(process))"
            }
        }
        return nil
    }

    /// Returns the name of a process. The kernel cuts it to 15 bytes (proc(5), `comm`); the name of the executable may be the entire one.
    static func name(_ name: String, executable: String?) -> String {
        guard let file = executable?.split(separator: "/").last, file.hasPrefix(name) else { return name }
        // The kernel adds this to a file that was removed or replaced.
        let removed = " (deleted)"
        return String(file.hasSuffix(removed) ? file.dropLast(removed.count) : file)
    }

    private static func names(in path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    private static func target(of path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { readlink(path, $0, bytes.count) } ?? -1
        }
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }

    /// Returns the text of a file of /proc, at most 1 MiB.
    private static func text(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < 1 << 20 {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The table of TCP sockets in /proc/net/tcp (proc(5)).
enum SocketTable {
    /// Returns the inodes of the sockets that listen on a port.
    static func listeners(in text: String, port: UInt16) -> [String] {
        text.split(separator: "\n").dropFirst().compactMap { line in
            let columns = line.split(separator: " ")
            // sl, local_address, rem_address, st, tx:rx, tr:when, retrnsmt, uid, timeout, inode. State 0A is LISTEN.
            guard columns.count > 9, columns[3] == "0A", let colon = columns[1].lastIndex(of: ":"),
                UInt16(columns[1][columns[1].index(after: colon)...], radix: 16) == port
            else { return nil }
            return String(columns[9])
        }
    }
}
