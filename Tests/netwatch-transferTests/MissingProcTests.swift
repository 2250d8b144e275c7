import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The programs without /proc, as in a chroot.
@Suite(.requiresMounts, .skippedUnderSanitizers, .timeLimit(.minutes(10))) struct MissingProcTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    /// Runs a command with an empty file system over /proc.
    private func run(_ arguments: [String]) throws -> Program {
        let cover = "mount -t tmpfs none /proc && exec \"$@\""
        return try Program(
            ["unshare", "--mount", "sh", "-c", cover, "sh"] + arguments,
            environment: ["XDG_STATE_HOME": folder.state.path, "http_proxy": nil], directory: folder.path)
    }

    private func netwatch(_ arguments: String) throws -> Program {
        try run([Programs.netwatch] + arguments.split(separator: " ").map(String.init))
    }

    @Test(arguments: [
        ("--version", 0, "0.1.0"), ("watch --json --for 100ms", 0, #"{"v":1,"seq":0,"#), ("status -q 127.0.0.1:1", 1, nil),
        ("wait --timeout 50ms 127.0.0.1:1 -- true", 124, nil), ("nonsense", 64, nil), ("get", 64, nil),
        ("put /etc/passwd", 64, nil),
        ("get --json --timeout 50ms http://127.0.0.1:1/a", 1, #"{"v":1,"seq":0,"#),
    ])
    func `without /proc each command works`(arguments: String, code: Int32, output: String?) throws {
        let program = try netwatch(arguments)
        let line = try program.nextLine()
        try expectEqual(program.wait(), code, "\(program.ending)")
        if let output { #expect(line?.hasPrefix(output) == true) } else { expectNil(line) }
    }

    @Test(arguments: [("true", 0), ("false", 1), ("/nonexistent", 127)])
    func `without /proc wait runs its command and exits with its code`(command: String, code: Int32) throws {
        let server = try TestServer { _ in StubResponse() }
        let program = try netwatch("wait 127.0.0.1:\(server.port) -- \(command)")
        try expectEqual(program.wait(), code, "\(program.ending)")
    }

    @Test func `without /proc a transfer program in the working directory is never run`() throws {
        try Data("#!/bin/sh\necho planted\n".utf8).write(to: URL(fileURLWithPath: folder.file("netwatch-transfer")))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: folder.file("netwatch-transfer"))
        // argv[0] has no slash, but the executed path has one.
        let named = try run(["bash", "-c", "exec -a netwatch \"$0\" get --version", Programs.netwatch])
        try expectEqual(named.remainingLines(), ["0.1.0"])
        try expectEqual(named.wait(), 0, "\(named.ending)")
        // Neither has a slash.
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("netwatch"), withDestinationPath: Programs.netwatch)
        let bare = try run(["/usr/bin/python3", "-c", "import os; os.execv('netwatch', ['netwatch', 'get', '--version'])"])
        try expectEqual(bare.remainingLines(), [])
        try expectEqual(bare.wait(), 69, "\(bare.ending)")
        // A sanitizer reports the missing /proc on a separate line.
        let lines = bare.standardError.split(separator: "\n").filter { !$0.hasPrefix("==") }
        let expected = "netwatch: get: without /proc this program does not know its own directory; "
        #expect(lines.count == 1 && lines.first?.hasPrefix(expected) == true, "\(bare.ending)")
    }
}
