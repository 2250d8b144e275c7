import Expectations
import Foundation
import HTTPSessionTestKit
import NetworkLab
import Testing

/// Both programs with few descriptors (RLIMIT_NOFILE): each fails with an exit code and one line, never by a trap, and never
/// hangs. Sanitizers need descriptors of their own.
@Suite(.skippedUnderSanitizers, .timeLimit(.minutes(10))) struct DescriptorLimitTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    private func run(_ arguments: [String], limit: Int) throws -> Program {
        try Program(
            ["sh", "-c", "ulimit -n \(limit); exec \"$@\"", "sh", Programs.netwatch] + arguments,
            environment: ["http_proxy": nil, "XDG_STATE_HOME": folder.state.path],
            // A schema is longer than the buffer of a pipe.
            directory: folder.path, output: .file)
    }

    @Test(arguments: ["get", "put"])
    func `at every descriptor limit a transfer completes or fails with one line`(command: String) throws {
        let server = try TestServer { request in StubResponse(request.method == "PUT" ? 201 : 200, body: .pattern(10_000)) }
        try folder.make("source", size: 10_000)
        var completed: [Int] = []
        let limits = 4...50
        for limit in limits {
            let url = server.url("/file").absoluteString
            let arguments =
                command == "get" ? ["get", "-q", "-o", "file", url] : ["put", "-q", "--protocol", "put", "source", url]
            let program = try run(arguments, limit: limit)
            let code = try program.wait(within: .seconds(60))
            #expect([0, 71].contains(code), "limit \(limit): \(program.ending)")
            let lines = program.standardError.split(separator: "\n")
            #expect(lines.count == (code == 0 ? 0 : 1) && lines.allSatisfy { $0.hasPrefix("netwatch: ") }, "\(program.ending)")
            if code == 0 { completed.append(limit) }
        }
        // The lowest limit depends on the descriptors that the test's environment leaves open. Above it no transfer fails,
        // except for a margin of descriptors that other threads have open while the session counts.
        let lowest = try #require(completed.first)
        #expect(Set(completed).isSuperset(of: limits.filter { $0 >= lowest + 3 }) && lowest <= 48, "\(completed)")
    }

    @Test(
        arguments: [
            ["status", "127.0.0.1:1"], ["watch", "--for", "20ms", "--exec", "true"],
            ["wait", "--timeout", "20ms", "127.0.0.1:1"],
            ["record", "--for", "20ms", "recording"], ["schema"], ["--version"],
        ])
    func `at a descriptor limit every other command ends in order`(arguments: [String]) throws {
        for limit in [4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 20, 32] {
            let program = try run(arguments, limit: limit)
            let code = try program.wait(within: .seconds(60))
            #expect([0, 1, 71, 73, 124].contains(code), "limit \(limit): \(program.ending)")
            #expect(program.standardError.split(separator: "\n").count <= 1, "limit \(limit): \(program.ending)")
        }
    }

    @Test(arguments: [1, 4])
    func `1,000 streams of sessions and a test server in one process leave libdispatch its descriptor`(sessions: Int) throws {
        let program = try Program(
            ["sh", "-c", "ulimit -n 128; exec \"$@\"", "sh", Programs.built("laboratory"), "streams", "1000", "\(sessions)"],
            output: .file)
        // Some streams fail, because the server accepts no connection without a descriptor. What counts is that the process does not end by SIGILL.
        let code = try program.wait(within: .seconds(240))
        #expect(code == 0, "\(program.ending)")
        let line = try #require(program.output.firstMatch(of: /of 1000 streams failed, (\d+) descriptors stayed free/))
        // On a busy machine the server may have accepted one connection more when the others are counted.
        #expect((Int(line.1) ?? 0) >= 1, "\(line.0)")
    }

    @Test(arguments: [48, 64, 128])
    func `at a descriptor limit 64 parallel downloads wait for each other`(limit: Int) throws {
        let server = try TestServer { _ in StubResponse(body: .pattern(10_000)) }
        let urls = (0..<64).map { server.url("/file\($0)").absoluteString }
        let program = try run(["get", "-q", "--parallel", "64", "-d", "files"] + urls, limit: limit)
        try expectEqual(program.wait(within: .seconds(60)), 0, "\(program.ending)")
        expectEqual(program.standardError, "")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.file("files")).count, 64)
    }
}
