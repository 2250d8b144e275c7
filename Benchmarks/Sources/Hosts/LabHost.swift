import Foundation
import Glibc

/// A host made of a network namespace without a name, which a child process holds. The namespace is removed when this process
/// ends, however that happens.
package final class LabHost {
    /// The path for `--netns` and `nsenter`.
    package let path: String
    private let holder: Child

    /// Makes a host with only `lo`, which is down.
    package init() throws {
        holder = try Child(["unshare", "--net", "sleep", "infinity"])
        path = "/proc/\(holder.processID)/ns/net"
        let own = Self.inode("/proc/self/ns/net")
        let end = Clock.now() + 10_000_000_000
        // Until unshare(1) has executed sleep(1), the child may still be in our namespace.
        while Self.inode(path) == own || Self.inode(path) == nil {
            guard Clock.now() < end else {
                throw BenchmarkError("no network namespace is available: run this as root, or under 'unshare -Ur'")
            }
            usleep(1000)
        }
    }

    deinit { holder.stop() }

    /// Lays a cable to another host: an interface of this name at both ends, up, here with the address 10.9.NUMBER.2/24 and there
    /// with 10.9.NUMBER.1/24. `index` is the index of this end, and the other end has the next one.
    package func connect(to other: LabHost, _ name: String, number: Int = 1, index: Int? = nil) throws {
        let (own, others) = (index.map { "index \($0) " } ?? "", index.map { "index \($0 + 1) " } ?? "")
        try ip("link add name \(name) \(own)type veth peer name \(name) \(others)netns \(other.path)")
        for (host, last) in [(self, 2), (other, 1)] {
            try host.ip("link set \(name) addrgenmode none")
            try host.ip("address add 10.9.\(number).\(last)/24 dev \(name)")
            try host.ip("link set \(name) up")
        }
    }

    private static func inode(_ path: String) -> UInt64? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// The number of connections that were begun on the host since its start (RFC 4022, tcpActiveOpens).
    package func activeOpens() throws -> Double {
        let file = path.replacingOccurrences(of: "/ns/net", with: "/net/snmp")
        let rows = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("Tcp:") }
        let (names, values) = (rows.first?.split(separator: " ") ?? [], rows.last?.split(separator: " ") ?? [])
        guard let place = names.firstIndex(of: "ActiveOpens"), let value = Double(values[place]) else {
            throw BenchmarkError("\(file): no ActiveOpens")
        }
        return value
    }

    /// Runs `ip` with arguments separated by spaces.
    package func ip(_ words: String) throws {
        try Child.run(["ip"] + words.split(separator: " ").map(String.init), in: self)
    }

    /// Runs a script of `ip` commands, one a line, in one process.
    package func run(_ script: Script) throws { try Child.run(["ip", "-batch", "-"], in: self, input: script.open()) }
}

/// A file of `ip` commands without a name, so that the kernel removes it with its last descriptor.
package final class Script {
    private let descriptor: Int32

    package init(_ lines: [String]) throws {
        var path = Array("/tmp/netwatch-benchmark-XXXXXX".utf8CString)
        descriptor = mkstemp(&path)
        guard descriptor >= 0 else { throw BenchmarkError("/tmp: \(errno)") }
        unlink(path)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        try FileHandle(fileDescriptor: descriptor).write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
    }

    deinit { close(descriptor) }

    /// The file's descriptor, positioned at its beginning.
    package func open() -> Int32 {
        lseek(descriptor, 0, SEEK_SET)
        return descriptor
    }
}
