import EventLoop
import Expectations
import Foundation
import Glibc
import HTTPSessionTestKit
import NetworkLab
import Testing

/// The built program `netwatch beat`: jobs, their reports, and reports that wait.
@Suite(.serialized, .timeLimit(.minutes(20))) struct BeatProgramTests {
    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    private static let path = "/api/v1/heartbeat/job"
    private static func answer(_ request: ReceivedRequest) -> StubResponse { StubResponse(body: "ok\n") }

    /// Starts `netwatch beat`, with `--service` unless it is `nil`.
    private func beat(
        _ service: String?, _ arguments: String..., token: String? = "secret", environment: [String: String?] = [:],
        input: Program.Input = .empty, output: Program.Output = .pipe, errors: Program.Errors = .file
    ) throws -> Program {
        var variables: [String: String?] = ["NETWATCH_SERVICE": nil, "NETWATCH_BEAT_TOKEN": token]
        variables.merge(environment) { $1 }
        return try folder.run(
            ["beat"] + (service.map { ["--service", $0] } ?? []) + arguments, environment: variables, input: input,
            output: output,
            errors: errors)
    }

    /// The directory of reports that wait, and its files with reports.
    private var state: String { folder.state.file("netwatch/beat") }
    private var waiting: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: state)) ?? []).filter { $0.hasSuffix(".json") }.sorted()
    }

    /// Waits until this number of reports waits.
    private func awaitWaiting(_ count: Int) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while waiting.count < count {
            guard ContinuousClock.now < deadline else { throw LabError("\(waiting.count) of \(count) reports wait") }
            usleep(10_000)
        }
    }

    /// An address at which nobody listens.
    private func closedService() throws -> String {
        let server = try TestServer(reply: Self.answer)
        defer { server.stop() }
        return server.origin
    }

    /// A server at the address of one that has ended.
    private func server(
        at service: String, reply: @escaping @Sendable (ReceivedRequest) -> StubResponse = answer
    ) throws -> TestServer {
        let port = try #require(URL(string: service)?.port)
        return try TestServer(at: .ip("127.0.0.1", port: UInt16(port)), reply: reply)
    }

    // MARK: Jobs

    @Test func `a job's start, exit code and output are reported with the token`() throws {
        let server = try TestServer(reply: Self.answer)
        let program = try beat(server.origin, "job", "--", "sh", "-c", "cat; echo error >&2; exit 0", input: .text("in\n"))
        try expectEqual(program.remainingLines(), ["in"])
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.standardError, "error\n")
        let requests = server.requests
        expectEqual(requests.map(\.path), [Self.path + "/start", Self.path + "/0"])
        expectEqual(requests.map(\.method), ["POST", "POST"])
        expectEqual(requests.map { $0["authorization"] }, ["Bearer secret", "Bearer secret"])
        expectEqual(requests.first?.text, "")
        expectEqual(requests.last?.text.split(separator: "\n").sorted(), ["error", "in"])
        expectEmpty(waiting)
    }

    private static let endings: [(command: [String], code: Int32)] = [
        (["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137),
        (["./missing"], 127),
        (["missing-program"], 127), (["./text"], 126), (["./script", "4"], 4), (["false"], 1),
    ]

    @Test(arguments: endings)
    func `beat exits with the code of its command and reports it`(command: [String], code: Int32) throws {
        try Data("exit 1\n".utf8).write(to: URL(fileURLWithPath: folder.file("text")))
        // A script without '#!' is run by the shell, as by a shell.
        try Data("exit \"$1\"\n".utf8).write(to: URL(fileURLWithPath: folder.file("script")))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.file("script"))
        let server = try TestServer(reply: Self.answer)
        let program = try folder.run(
            ["beat", "--service", server.origin, "job", "--"] + command,
            environment: ["NETWATCH_SERVICE": nil, "NETWATCH_BEAT_TOKEN": nil])
        try expectEqual(program.wait(), code, "\(program.ending)")
        let last = try #require(server.requests.last)
        expectEqual(last.path, Self.path + "/\(code)")
        expectNil(last["authorization"])
        switch code {
        case 126, 127:
            expectEqual(server.requests.count, 1)
            #expect(program.standardError.hasPrefix("netwatch: \(command[0]): cannot run: "))
            expectEqual(last.text, program.standardError)
        case 128 + SIGTERM: expectEqual(last.text, "netwatch: the command was ended by signal 15, SIGTERM\n")
        case 128 + SIGKILL: expectEqual(last.text, "netwatch: the command was ended by signal 9, SIGKILL\n")
        default: expectEqual(last.text, "")
        }
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1])
    func `a signal for beat is passed on to the command`(number: Int32) throws {
        let server = try TestServer(reply: Self.answer)
        let name = [SIGINT: "INT", SIGTERM: "TERM", SIGHUP: "HUP", SIGQUIT: "QUIT", SIGUSR1: "USR1"][number] ?? ""
        let script = "trap 'echo \(name); exit 7' \(name); echo ready; sleep 1000 & wait"
        let program = try beat(server.origin, "job", "--", "sh", "-c", script)
        try expectEqual(program.nextLine(), "ready")
        try program.signal(number)
        try expectEqual(program.nextLine(), name)
        try expectEqual(program.wait(), 7, "\(program.ending)")
        expectEqual(server.requests.last?.path, Self.path + "/7")
        expectEqual(server.requests.last?.text, "ready\n\(name)\n")
    }

    @Test func `a command inherits ignored signals, and no blocked ones`() throws {
        let server = try TestServer(reply: Self.answer)
        let program = try Program(
            [
                "sh", "-c", "trap '' INT PIPE; exec \"$@\"", "sh", Programs.netwatch, "beat", "--service", server.origin, "job",
                "--",
                "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status",
            ], environment: ["http_proxy": nil, "XDG_STATE_HOME": folder.state.path])
        let lines = try program.remainingLines()
        try expectEqual(program.wait(), 0, "\(program.ending)")
        // Without the real-time signals: glibc's posix_spawn(3), by which this test starts programs, ignores two of its own.
        let masks = lines.map { (UInt64($0.split(separator: "\t").last ?? "", radix: 16) ?? 0) & 0x7FFF_FFFF }
        expectEqual(masks, [0, 1 << UInt64(SIGINT - 1) | 1 << UInt64(SIGPIPE - 1)])
    }

    @Test func `a service that does not answer does not hold the job`() async throws {
        let gate = try Gate()
        let server = try TestServer { _ in StubResponse(body: "ok\n").held(by: gate) }
        let program = try beat(server.origin, "--timeout", "10m", "job", "--", "sh", "-c", "echo first; cat", input: .pipe)
        try expectEqual(program.nextLine(), "first")
        try await server.awaitRequests(1)
        // The report of the start is still on its way.
        try program.write("second\n")
        try expectEqual(program.nextLine(), "second")
        program.closeInput()
        try awaitWaiting(2)
        // The job has ended: a signal ends the wait for the service.
        try program.signal(SIGTERM)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(waiting.count, 2)
        expectEqual(
            program.standardError, "netwatch: beat: job: 2 reports wait in \(state) for the next run: interrupted\n")
        gate.open()
    }

    @Test func `the end of a long output is reported as UTF-8, and all of it is passed on`() throws {
        let server = try TestServer(reply: Self.answer)
        let script = #"i=0; while [ $i -lt 3000 ]; do echo "é$i"; i=$((i+1)); done; printf '\377end'"#
        let program = try beat(server.origin, "job", "--", "sh", "-c", script, output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        let lines = (0..<3_000).map { "é\($0)\n" }.joined()
        expectEqual(program.output, lines + "\u{FFFD}end")
        let body = try #require(server.requests.last)
        #expect(body.bodyLength <= 10_240 && body.bodyLength > 10_200)
        #expect(String(validating: body.body, as: UTF8.self) != nil)
        #expect((lines + "\u{FFFD}end").hasSuffix(body.text))
    }

    @Test func `standard output and error of the same file keep their order`() throws {
        let server = try TestServer(reply: Self.answer)
        let script = "for i in 1 2 3 4 5 6 7 8; do echo out$i; echo err$i >&2; done"
        let program = try beat(server.origin, "job", "--", "sh", "-c", script, errors: .output)
        let lines = (1...8).flatMap { ["out\($0)", "err\($0)"] }
        try expectEqual(program.remainingLines(), lines)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.requests.last?.text, lines.map { $0 + "\n" }.joined())
    }

    @Test func `--no-output leaves the streams alone and reports none of them`() throws {
        let server = try TestServer(reply: Self.answer)
        let script = "test -t 1 && echo terminal || echo pipe"
        for (option, line) in [("--no-output", "terminal"), ("--quiet", "pipe")] {
            let program = try beat(server.origin, option, "job", "--", "sh", "-c", script, output: .terminal)
            try expectEqual(program.nextLine(), line + "\r")
            try expectEqual(program.wait(), 0, "\(program.ending)")
            expectEqual(server.requests.last?.text, line == "pipe" ? "pipe\n" : "")
        }
    }

    @Test func `without a reader the command receives SIGPIPE, as without beat`() throws {
        let server = try TestServer(reply: Self.answer)
        let program = try beat(server.origin, "job", "--", "yes")
        try expectEqual(program.nextLine(), "y")
        program.closeOutput()
        try expectEqual(program.wait(), 128 + SIGPIPE, "\(program.ending)")
        expectEqual(server.requests.last?.path, Self.path + "/\(128 + SIGPIPE)")
    }

    @Test(arguments: ["sleep 1000", "yes started"])
    func `processes that the command leaves behind do not hold beat`(process: String) throws {
        let server = try TestServer(reply: Self.answer)
        let program = try beat(server.origin, "job", "--", "sh", "-c", "echo started; \(process) &", output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(server.requests.last?.text.hasPrefix("started\n") == true && program.output.hasPrefix("started\n"))
    }

    // MARK: Events without a command

    @Test func `an event is reported with a text`() throws {
        let server = try TestServer(reply: Self.answer)
        for (arguments, input, path, text) in [
            ([], Program.Input.empty, "", ""), (["--start"], .empty, "/start", ""),
            (["--fail", "--message", "disk full"], .empty, "/fail", "disk full"),
            (["--code", "9", "--stdin"], .text("a\nb\n"), "/9", "a\nb\n"),
        ] as [([String], Program.Input, String, String)] {
            let program = try folder.run(
                ["beat"] + arguments + ["job"],
                environment: ["NETWATCH_SERVICE": server.origin + "/", "NETWATCH_BEAT_TOKEN": "secret"], input: input)
            try expectEqual(program.wait(), 0, "\(program.ending)")
            expectEqual(program.standardError, "")
            expectEqual(server.requests.last?.path, Self.path + path)
            expectEqual(server.requests.last?.text, text)
        }
    }

    @Test func `a report is sent to a Unix socket`() throws {
        let path = folder.file("api.sock")
        let server = try TestServer(at: .unix(path), reply: Self.answer)
        let program = try beat(path, "job")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.requests.map(\.path), [Self.path])
        let local = folder.state.file("run")
        try FileManager.default.createDirectory(atPath: local + "/netwatch", withIntermediateDirectories: true)
        let own = try TestServer(at: .unix(local + "/netwatch/api.sock"), reply: Self.answer)
        if access("/run/netwatch/api.sock", F_OK) != 0 {
            try expectEqual(beat(nil, "job", environment: ["XDG_RUNTIME_DIR": local]).wait(), 0)
            expectEqual(own.requests.map(\.path), [Self.path])
        }
    }

    @Test func `a malformed command line is one line`() throws {
        for (arguments, message) in [
            (["beat"], "beat: the name is missing; write: netwatch beat NAME [-- COMMAND]"),
            (["beat", "job", "--"], "beat --: the command is missing; write -- COMMAND"),
            (["beat", "job", "--", ""], "beat --: the command is missing; write -- COMMAND"),
            (["beat", "job", "./backup", "x"], "beat './backup': a command follows '--': write -- ./backup"),
            (
                ["beat", "--timeout", "0s", "job"],
                "--timeout 0s: must be above zero; write a whole number with ms, s, m or h, as in 250ms, 3s, 2m or 1h"
            ),
            (["beat", "--state", "", "job"], "--state '': write the path of a directory"),
        ] {
            let program = try folder.run(arguments)
            try expectEqual(program.wait(), 64, "\(program.ending)")
            expectEqual(program.standardError, "netwatch: \(message)\n")
        }
    }

    // MARK: Reports that wait

    @Test func `reports wait while the service is down, and are delivered first, in order, with their times`() throws {
        let service = try closedService()
        for (arguments, code) in [(["--fail"], 1), (["--code", "3"], 1)] as [([String], Int32)] {
            let program = try folder.run(
                ["beat", "--service", service, "--timeout", "300ms"] + arguments + ["job"],
                environment: ["NETWATCH_SERVICE": nil, "NETWATCH_BEAT_TOKEN": "secret"])
            try expectEqual(program.wait(), code, "\(program.ending)")
            expectEqual(program.standardError.split(separator: "\n").count, 1)
            #expect(program.standardError.hasPrefix("netwatch: beat: job: "), "\(program.ending)")
            // A busy machine may have no time left for an attempt, and then says so in place of the server's refusal.
            #expect(program.standardError.contains(" in \(state) for the next run: "), "\(program.ending)")
        }
        let failed = try beat(service, "--timeout", "300ms", "job", "--", "sh", "-c", "echo out; exit 4")
        try expectEqual(failed.wait(), 4, "\(failed.ending)")
        #expect(failed.standardError.hasPrefix("netwatch: beat: job: 4 reports wait in "), "\(failed.ending)")
        for file in waiting {
            let text = try String(contentsOfFile: "\(state)/\(file)", encoding: .utf8)
            #expect(!text.contains("secret"))
        }
        let server = try server(at: service)
        // Another heartbeat has its own reports.
        try expectEqual(beat(service, "other").wait(), 0)
        expectEqual(server.requests.map(\.path), ["/api/v1/heartbeat/other"])
        let program = try beat(service, "job")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.standardError, "")
        let requests = server.requests.dropFirst()
        expectEqual(requests.map(\.path), ["/fail", "/3", "/start", "/4", ""].map { Self.path + $0 })
        let times = requests.dropLast().map { $0.query ?? "" }
        #expect(times.allSatisfy { $0.wholeMatch(of: /at=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ/) != nil }, "\(times)")
        expectEqual(times, times.sorted())
        expectEqual(requests.dropLast().last?.text, "out\n")
        expectEmpty(waiting)
    }

    @Test func `a report that waits is for the service to which it was sent`() throws {
        let service = try closedService()
        try expectEqual(beat(service, "--timeout", "200ms", "--fail", "job").wait(), 1)
        let other = try TestServer(reply: Self.answer)
        try expectEqual(beat(other.origin, "job").wait(), 0)
        expectEqual(other.requests.map(\.path), [Self.path])
        expectEqual(waiting.count, 1)
    }

    @Test(arguments: [400, 404, 413]) func `reports that the service refuses are dropped with one line`(status: Int) throws {
        let service = try closedService()
        try expectEqual(beat(service, "--timeout", "200ms", "--fail", "job").wait(), 1)
        let server = try server(at: service) { _ in
            StubResponse(status, fields: ["Content-Type": "application/json"], body: #"{"error":"x","detail":"unknown"}"#)
        }
        let program = try beat(service, "job", "--", "sh", "-c", "exit 5")
        try expectEqual(program.wait(), 5, "\(program.ending)")
        expectEqual(program.standardError.split(separator: "\n").count, 1)
        #expect(
            program.standardError.hasPrefix("netwatch: beat: job: 3 reports were dropped: the service answered \(status) "),
            "\(program.ending)")
        #expect(program.standardError.hasSuffix(": unknown\n"), "\(program.ending)")
        expectEqual(server.requests.count, 3)
        expectEmpty(waiting)
        try expectEqual(beat(service, "--quiet", "job").wait(), 1)
    }

    @Test func `a short Retry-After is waited for, with the same key`() throws {
        let server = try TestServer { request in
            request.arrival == 1 ? StubResponse(429, fields: ["Retry-After": "1"]) : StubResponse(body: "ok\n")
        }
        let program = try beat(server.origin, "--timeout", "60s", "job")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.requests.count, 2)
        let keys = server.requests.compactMap { $0["idempotency-key"] }
        #expect(keys.count == 2 && keys[0] == keys[1])
    }

    @Test func `a long Retry-After is not waited for`() throws {
        let server = try TestServer { _ in StubResponse(429, fields: ["Retry-After": "3600"]) }
        let program = try beat(server.origin, "--timeout", "10m", "job")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(program.standardError.contains("the report waits in \(state) for the next run: "), "\(program.ending)")
        #expect(program.standardError.contains("429"), "\(program.ending)")
        expectEqual(server.requests.count, 1)
        expectEqual(waiting.count, 1)
    }

    @Test func `a login page of a network and a redirect deliver nothing`() throws {
        let other = try TestServer(reply: Self.answer)
        for response in [
            StubResponse(body: "<html>log in</html>"), StubResponse(302, fields: ["Location": other.origin + Self.path]),
        ] {
            let server = try TestServer { _ in response }
            let program = try beat(server.origin, "--timeout", "60s", "job")
            try expectEqual(program.wait(), 1, "\(program.ending)")
            expectEqual(server.requests.count, 1)
        }
        expectEmpty(other.requests)
        expectEqual(waiting.count, 2)
    }

    @Test func `a run that is killed while it sends leaves its report to the next one`() async throws {
        let gate = try Gate()
        let server = try TestServer { $0.arrival == 1 ? .never : StubResponse(body: "ok\n").held(by: gate) }
        let killed = try beat(server.origin, "--timeout", "10m", "--fail", "job")
        try await server.awaitRequests(1)
        try killed.signal(SIGKILL)
        try expectEqual(killed.wait(), 128 + SIGKILL)
        expectEqual(waiting.count, 1)
        gate.open()
        let program = try beat(server.origin, "job")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(server.requests.map(\.path), ["/fail", "/fail", ""].map { Self.path + $0 })
        #expect(server.requests[1].query?.hasPrefix("at=") == true)
        expectEqual(server.requests[0]["idempotency-key"], server.requests[1]["idempotency-key"])
        expectEmpty(waiting)
    }

    @Test func `two runs at a time deliver each report once`() async throws {
        let service = try closedService()
        for _ in 0..<3 { try expectEqual(beat(service, "--timeout", "100ms", "--fail", "job").wait(), 1) }
        let gate = try Gate()
        let server = try server(at: service) { _ in StubResponse(body: "ok\n").held(by: gate) }
        let programs = try (0..<2).map { try beat(service, "--timeout", "60s", "--code", "\($0)", "job") }
        try await server.awaitRequests(1)
        // Both have stored their reports, and one waits for the other.
        try awaitWaiting(5)
        gate.open()
        for program in programs { try expectEqual(program.wait(), 0, "\(program.ending)") }
        let keys = server.requests.compactMap { $0["idempotency-key"] }
        expectEqual(keys.count, 5)
        expectEqual(Set(keys).count, 5)
        expectEmpty(waiting)
    }

    @Test func `a damaged file is set aside with one line, and the others are delivered`() throws {
        let service = try closedService()
        for _ in 0..<2 { try expectEqual(beat(service, "--timeout", "100ms", "--fail", "job").wait(), 1) }
        let first = try #require(waiting.first)
        try #require(truncate("\(state)/\(first)", 10) == 0)
        let server = try server(at: service)
        let program = try beat(service, "job")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: beat: '\(state)/\(first)' is damaged, and set aside as \(first).damaged: it has no report\n")
        expectEqual(server.requests.map(\.path), ["/fail", ""].map { Self.path + $0 })
    }

    // MARK: The directory

    @Test func `a symbolic link as the directory is reported, not followed, and holds no report back`() throws {
        try FileManager.default.createDirectory(atPath: folder.file("target"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: folder.file("link"), withDestinationPath: folder.file("target"))
        let server = try TestServer(reply: Self.answer)
        let program = try beat(server.origin, "--state", folder.file("link"), "job", "--", "sh", "-c", "exit 3")
        try expectEqual(program.wait(), 3, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: beat: '\(folder.file("link"))' is not used: it is a symbolic link; name the directory itself\n")
        expectEqual(server.requests.map(\.path), ["/start", "/3"].map { Self.path + $0 })
        try expectEmpty(FileManager.default.contentsOfDirectory(atPath: folder.file("target")))
    }

    /// Runs beat with a directory below a mount of `options` at the folder's `mnt`.
    private func beat(
        below mount: String, _ service: String, _ arguments: String...
    ) throws -> Program {
        try FileManager.default.createDirectory(atPath: folder.file("mnt"), withIntermediateDirectories: true)
        return try Program(
            [
                "unshare", "--mount", "sh", "-c", "\(mount) && exec \"$@\"", folder.file("mnt"), Programs.netwatch, "beat",
                "--service", service, "--state", folder.file("mnt/beat"),
            ] + arguments, environment: ["http_proxy": nil, "NETWATCH_SERVICE": nil, "NETWATCH_BEAT_TOKEN": nil])
    }

    @Test(
        .requiresMounts,
        arguments: [
            ("mount -t tmpfs -o ro none \"$0\"", "Read-only file system"),
            (
                "mount -t tmpfs -o size=4k none \"$0\" && mkdir -m 700 \"$0/beat\" && head -c 4096 /dev/zero >\"$0/full\"",
                "No space left on device"
            ),
        ])
    func `without room for reports they are delivered, or lost with one line, and the exit code is the command's`(
        mount: String, reason: String
    ) throws {
        let server = try TestServer(reply: Self.answer)
        let program = try beat(below: mount, server.origin, "job", "--", "sh", "-c", "exit 3")
        try expectEqual(program.wait(), 3, "\(program.ending)")
        expectEqual(program.standardError, "")
        expectEqual(server.requests.map(\.path), ["/start", "/3"].map { Self.path + $0 })
        server.stop()
        let lost = try beat(below: mount, server.origin, "--timeout", "200ms", "job", "--", "sh", "-c", "exit 3")
        try expectEqual(lost.wait(), 3, "\(lost.ending)")
        expectEqual(lost.standardError.split(separator: "\n").count, 1)
        #expect(lost.standardError.hasPrefix("netwatch: beat: job: 2 reports are lost: "), "\(lost.ending)")
        #expect(lost.standardError.hasSuffix(": \(reason)\n"), "\(lost.ending)")
    }

    @Test func `without a home directory reports are delivered, or lost with one line`() throws {
        let server = try TestServer(reply: Self.answer)
        let environment: [String: String?] = ["XDG_STATE_HOME": nil, "HOME": nil]
        try expectEqual(beat(server.origin, "job", environment: environment).wait(), 0)
        server.stop()
        let program = try beat(server.origin, "--timeout", "200ms", "job", environment: environment)
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(
            program.standardError.hasSuffix(
                "; it cannot wait: neither XDG_STATE_HOME nor HOME names a directory; name one with --state\n"),
            "\(program.ending)")
    }

    // MARK: The token

    @Test func `a token comes from a file that others cannot read`() throws {
        let server = try TestServer(reply: Self.answer)
        let file = folder.file("token")
        try Data(" from-file \nmore\n".utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
        try expectEqual(beat(server.origin, "--token-file", file, "job").wait(), 0)
        expectEqual(server.requests.map { $0["authorization"] }, ["Bearer from-file"])
    }

    @Test(arguments: [
        ("readable", "every user may read or write it; run chmod o-rwx"),
        ("missing", "cannot be read: No such file or directory"),
        ("empty", "the first line is no token"), ("spaced", "the first line is no token"),
    ])
    func `without a usable token file the job runs and its reports wait`(name: String, reason: String) throws {
        let server = try TestServer(reply: Self.answer)
        for (name, text, mode) in [("readable", "t", 0o644), ("empty", "\n", 0o600), ("spaced", "a b", 0o600)] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file(name)))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.file(name))
        }
        let program = try beat(server.origin, "--token-file", folder.file(name), "job", "--", "sh", "-c", "echo ran; exit 2")
        try expectEqual(program.nextLine(), "ran")
        try expectEqual(program.wait(), 2, "\(program.ending)")
        expectEqual(
            program.standardError,
            "netwatch: beat: job: 2 reports wait in \(state) for the next run: --token-file \(folder.file(name)): \(reason)\n")
        expectEmpty(server.requests)
    }

    // MARK: Limits of the system

    @Test(.skippedUnderSanitizers) func `at every descriptor limit the command runs`() throws {
        let server = try TestServer(reply: Self.answer)
        for limit in 4...40 {
            let program = try Program(
                [
                    "sh", "-c", "ulimit -n \(limit); exec \"$@\"", "sh", Programs.netwatch, "beat", "--service", server.origin,
                    "--timeout", "300ms", "job", "--", "sh", "-c", "echo ran; exit 3",
                ], environment: ["http_proxy": nil, "XDG_STATE_HOME": folder.state.path, "NETWATCH_BEAT_TOKEN": nil],
                output: .file)
            try expectEqual(program.wait(), 3, "limit \(limit): \(program.ending)")
            expectEqual(program.output, "ran\n", "limit \(limit)")
            #expect(
                program.standardError.split(separator: "\n").allSatisfy { $0.hasPrefix("netwatch: beat: ") }, "\(program.ending)")
        }
        // What waits is delivered without a limit.
        try expectEqual(beat(server.origin, "--timeout", "60s", "job").wait(), 0)
        expectEqual(server.requests.last?.path, Self.path)
        expectEmpty(waiting)
    }
}
