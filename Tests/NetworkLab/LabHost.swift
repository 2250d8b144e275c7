import CLinux
import Foundation
import Glibc
import EventLoop

/// A host of the lab: a network namespace that a descriptor of the test process holds. The kernel removes it when the process
/// ends.
public final class LabHost: Sendable {
    /// A path of the namespace, valid as long as this host exists: for `ip … netns PATH`, `nsenter --net=PATH`, `--netns PATH`.
    public let path: String
    /// The name under /run/netns, if the host has one.
    public let name: String?
    private let namespace: Descriptor
    private let named: Locked<Bool>

    /// Makes a namespace without a name.
    init() throws {
        namespace = try onThread {
            guard unshare(netwatch_CLONE_NEWNET) == 0 else { throw LabError("unshare(CLONE_NEWNET)", errno: errno) }
            return try Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/thread-self/ns/net")
        }
        path = "/proc/\(getpid())/fd/\(namespace.number)"
        name = nil
        named = Locked(false)
    }

    /// Makes a namespace that `ip netns` lists.
    init(named name: String) throws {
        try Watchdog.shared.get().take(.namespace(name))
        try runProgram(["ip", "netns", "add", name], on: nil)
        let file = "/run/netns/\(name)"
        namespace = try Descriptor(open(file, O_RDONLY | O_CLOEXEC), file)
        path = "/proc/\(getpid())/fd/\(namespace.number)"
        self.name = name
        named = Locked(true)
    }

    deinit {
        try? deleteName()
    }

    /// Deletes the name, as an administrator might while a monitor runs. The host remains usable.
    public func deleteName() throws {
        try named.withLock { exists in
            guard exists, let name else { return }
            try runProgram(["ip", "netns", "del", name], on: nil)
            exists = false
            try Watchdog.shared.get().release(.namespace(name))
        }
    }

    /// Runs `body` on a thread in this namespace. Sockets that it opens remain in the namespace. `body` must not wait.
    public func perform<Value>(_ body: @escaping () throws -> Value) throws -> Value {
        let number = namespace.number
        return try onThread {
            guard setns(number, netwatch_CLONE_NEWNET) == 0 else { throw LabError("setns", errno: errno) }
            return try body()
        }
    }

    /// Runs a program to its end. - Returns: its output. - Throws: its standard error, if it fails.
    @discardableResult
    public func run(_ command: String..., input: String = "", within limit: Duration = .seconds(120)) throws -> String {
        try runProgram(command, on: self, input: input, within: limit)
    }

    /// Runs `ip` with arguments separated by spaces: `host.ip("link set v0 up")`.
    @discardableResult
    public func ip(_ words: String) throws -> String {
        try runProgram(["ip"] + words.split(separator: " ").map(String.init), on: self)
    }

    /// Runs many `ip` commands, one a line, in one process. The first command that fails ends it.
    public func ipBatch(_ lines: [String]) throws {
        try runProgram(["ip", "-batch", "-"], on: self, input: lines.joined(separator: "\n") + "\n", within: .seconds(120))
    }

    /// The output of `ip -j`, as JSON text: `host.json("route show table all")`.
    public func json(_ words: String) throws -> String {
        try ip("-j " + words)
    }

    /// Sets a kernel parameter of this namespace by its name below net: `host.set("ipv6.conf.all.disable_ipv6", "1")`.
    public func set(_ parameter: String, _ value: String) throws {
        let file = "/proc/sys/net/" + parameter.split(separator: ".").joined(separator: "/")
        try perform {
            let descriptor = try Descriptor(open(file, O_WRONLY | O_CLOEXEC), file)
            guard write(descriptor.number, value, value.utf8.count) >= 0 else { throw LabError(file, errno: errno) }
        }
    }
}

/// Runs a program to its end on a host, or in the test's own namespace.
@discardableResult
func runProgram(
    _ command: [String], on host: LabHost?, input: String = "", within limit: Duration = .seconds(120)
) throws -> String {
    let program = try Program(command, on: host, input: .text(input), output: .file)
    let code = try program.wait(within: limit)
    guard code == 0 else {
        let words = program.standardError.trimmingCharacters(in: .whitespacesAndNewlines)
        throw LabError("\(command.joined(separator: " ")): exit code \(code): \(words)")
    }
    return program.output
}
