import Expectations
import Foundation
import NetworkLab
import Testing

/// The built program `netwatch config`, which executes netwatch-service.
@Suite(.timeLimit(.minutes(20))) struct ConfigProgramTests {
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    @Test func `init writes a file that check accepts, and never replaces it`() throws {
        let written = try run("init", "n.yaml")
        try expectEqual(written.wait(), 0, "\(written.ending)")
        let checked = try run("check", "--config", "n.yaml")
        try expectEqual(checked.wait(), 0, "\(checked.ending)")
        try expectEqual(checked.remainingLines(), ["n.yaml: no error, 0 targets"])
        let again = try run("init", "n.yaml")
        try expectEqual(again.wait(), 73)
        expectEqual(again.standardError, "netwatch: n.yaml: exists already, and is not replaced\n")
    }

    @Test func `init without a file writes that of the user, and asks root for one`() throws {
        let program = try run("init", environment: ["HOME": scratch.path, "XDG_CONFIG_HOME": nil])
        let file = scratch.file(".config/netwatch/netwatch.yaml")
        guard geteuid() == 0 else {
            try expectEqual(program.wait(), 0, "\(program.ending)")
            return try expectEqual(program.remainingLines(), ["\(file): written; 'netwatch config check' checks it"])
        }
        try expectEqual(program.wait(), 64, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: config init: as root, name the file: 'netwatch config init /etc/netwatch/netwatch.yaml' for the system's service, or '-'\n"
        )
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `init follows no symbolic link`() throws {
        expectEqual(symlink(scratch.file("elsewhere"), scratch.file("n.yaml")), 0)
        let program = try run("init", "n.yaml")
        try expectEqual(program.wait(), 73)
        #expect(!FileManager.default.fileExists(atPath: scratch.file("elsewhere")))
    }

    @Test func `check reports each error in a line, and exits with 78`() throws {
        try Data("intervall: 1s\ntargets: [x]\n".utf8).write(to: URL(fileURLWithPath: scratch.file("n.yaml")))
        let program = try run("check", "--config", "n.yaml")
        try expectEqual(program.wait(), 78)
        expectEqual(
            program.standardError,
            """
            netwatch: n.yaml:1:1: unknown key 'intervall'; the nearest is 'interval'
            netwatch: n.yaml:2:11: target 'x': port: is missing; write x:PORT

            """)
        try expectEqual(program.remainingLines(), [])
    }

    @Test func `show prints the combined configuration with its sources`() throws {
        try Data("interval: 5s\n".utf8).write(to: URL(fileURLWithPath: scratch.file("n.yaml")))
        let program = try run(
            "show", "--config", "n.yaml", "--listen", "127.0.0.1:1", "db:5432", environment: ["NETWATCH_CONFIG_FAIL_AFTER": "4"])
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let lines = try program.remainingLines().map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
        for line in [
            "listen: 127.0.0.1:1 # --listen", "interval: 5s # n.yaml:1", "fail_after: 4 # NETWATCH_CONFIG_FAIL_AFTER",
            "probe_timeout: 3s # default", "open_after: 20s # default", "- db:5432 # TARGET",
        ] { #expect(lines.contains(line), "\(line) in \(lines)") }
    }

    @Test func `a missing file of --config exits with 66`() throws {
        let program = try run("check", "--config", "missing.yaml")
        try expectEqual(program.wait(), 66)
        expectEqual(program.standardError, "netwatch: --config missing.yaml: cannot be read: No such file or directory\n")
    }

    @Test func `a FIFO and a loop of links as --config exit with 78`() throws {
        expectEqual(mkfifo(scratch.file("fifo.yaml"), 0o600), 0)
        expectEqual(symlink("loop.yaml", scratch.file("loop.yaml")), 0)
        for (name, reason) in [("fifo", "is not a regular file"), ("loop", "its symbolic links form a loop, or are too many")] {
            let program = try run("check", "--config", "\(name).yaml")
            try expectEqual(program.wait(), 78)
            expectEqual(program.standardError, "netwatch: --config \(name).yaml: \(reason)\n")
        }
    }

    @Test func `the help of config lists its commands`() throws {
        let program = try Program([try Programs.netwatch, "help", "config"], directory: scratch.path)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(try program.remainingLines().joined().contains("check"))
    }

    private func run(_ arguments: String..., environment: [String: String?] = [:]) throws -> Program {
        _ = try Programs.built("netwatch-service")
        return try Program([try Programs.netwatch, "config"] + arguments, environment: environment, directory: scratch.path)
    }
}
