import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// The built program in hosts: its exit codes, hooks and recordings.
@Suite(.requiresNamespaces)
struct ProgramInHostTests {
    private func netwatch(_ words: String..., host: LabHost, output: Program.Output = .pipe) throws -> Program {
        try Program([Programs.netwatch] + words + ["--netns", host.path], output: output)
    }

    /// A network with an uplink whose router has an address.
    private func makeNetwork() throws -> Network {
        let network = try Network()
        try network.host.ip("link set lo up")
        try network.uplink("v0", "10.1.0.1/24")
        try network.router.ip("addr add 10.1.0.254/24 dev rv0")
        return network
    }

    private func expectOneLine(_ program: Program, _ words: String) {
        let lines = program.standardError.split(separator: "\n")
        #expect(lines.count == 1 && lines[0].hasPrefix("netwatch: ") && lines[0].contains(words), "\(program.standardError)")
    }

    // MARK: Exit codes

    @Test(.skippedUnderSanitizers, arguments: ["watch", "status", "wait", "record /dev/null"])
    func `a namespace that cannot be entered or does not exist gives an exit code and one line`(_ command: String) throws {
        let host = try Lab().host()
        // Root without CAP_SYS_ADMIN, which entering a namespace takes, is refused like an ordinary user.
        let words = command.split(separator: " ").map(String.init)
        let refused = try Program(
            ["setpriv", "--bounding-set", "-sys_admin", Programs.netwatch] + words + ["--netns", host.path], output: .file)
        try expectEqual(refused.wait(), 77, "\(refused.ending)")
        expectOneLine(refused, "not permitted")
        for none in ["/dev/null", "/nowhere/ns", "netwatch-no-such", "/proc/self/ns/uts"] {
            let program = try Program([Programs.netwatch] + words + ["--netns", none], output: .file)
            try expectEqual(program.wait(), 66, "\(none)")
            expectOneLine(program, none)
            expectEmpty(program.output)
        }
    }

    @Test func `status of a host with loopback only prints the path and exits with 1`() throws {
        let host = try Lab().host(loopback: true)
        let program = try netwatch("status", "--json", host: host, output: .file)
        try expectEqual(program.wait(), 1, "\(program.ending)")
        let document = try JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        let path = try #require(document?["path"] as? [String: Any])
        try expectEqual(Seen(record: path).line, "unsatisfied link/no-interface")
        expectEmpty(program.standardError)
    }

    @Test func `status and wait with targets exit with 0 if these are up`() throws {
        let network = try makeNetwork()
        let open = try network.router.serve(at: "10.1.0.254")
        let closed = try network.router.serve(.closed, at: "10.1.0.254")
        let (up, down) = ("10.1.0.254:\(open.port)", "10.1.0.254:\(closed.port)")
        // The target is on the link: no default route is needed, and the path stays unsatisfied.
        try expectEqual(netwatch("status", up, host: network.host).wait(), 0)
        try expectEqual(netwatch("status", up, down, host: network.host).wait(), 1)
        try expectEqual(netwatch("status", "192.0.2.1:80", host: network.host).wait(), 1)
        try expectEqual(netwatch("wait", "--any", up, down, host: network.host).wait(), 0)
        let both = try netwatch("wait", "--timeout", "300ms", up, down, host: network.host)
        try expectEqual(both.wait(), 124, "\(both.ending)")
        expectOneLine(both, down)
    }

    @Test func `wait finds a server within seconds that begins to listen after the first probes`() throws {
        let network = try makeNetwork()
        let port = try network.router.serve(.closed, at: "10.1.0.254").port
        let program = try Program(
            [Programs.netwatch, "wait", "-v", "--netns", network.host.path, "10.1.0.254:\(port)", "--", "echo", "ran"],
            errors: .output)
        // Before the verdict the reason is that of the last probe.
        let reason = try program.nextLine(within: patience) { $0.contains("tcp/refused") }
        let target = "netwatch: wait: 10.1.0.254:\(port)"
        #expect(["\(target) is down, ", "\(target): "].contains { reason.hasPrefix("\($0)tcp/refused: ") }, "\(reason)")
        let server = try network.router.serve(at: "10.1.0.254", port: port)
        let opened = ContinuousClock.now
        _ = try program.nextLine(within: patience) { $0.hasPrefix("netwatch: wait: the condition holds after ") }
        // The interval of other commands is 10 s.
        #expect(ContinuousClock.now - opened < .seconds(8))
        try expectEqual(program.nextLine(within: patience), "ran")
        try expectEqual(program.wait(within: patience), 0, "\(program.ending)")
        server.close()
    }

    @Test func `wait shows on a terminal what it waits for, and removes the line`() throws {
        let network = try makeNetwork()
        let program = try Program(
            [Programs.netwatch, "wait", "--timeout", "30m", "--netns", network.host.path, "10.1.0.254:9", "--", "echo", "ran"],
            environment: ["TERM": "xterm", "LANG": "C.UTF-8"], output: .terminal, errors: .output)
        _ = try program.nextLine(within: patience) { $0.contains("waiting for ") && $0.contains("s of 30m: ") }
        let server = try network.router.serve(at: "10.1.0.254", port: 9)
        let end = try program.nextLine(within: patience) { $0.hasSuffix("ran\r") }
        #expect(end.contains("\u{1b}[J"), "\(end)")
        try expectEqual(program.wait(within: patience), 0, "\(program.ending)")
        server.close()
    }

    @Test func `probe --live redraws a row for each target, and Ctrl-C prints the summary`() throws {
        let network = try makeNetwork()
        let server = try network.router.serve(at: "10.1.0.254")
        let up = "10.1.0.254:\(server.port)"
        let program = try Program(
            [Programs.netwatch, "probe", "--live", "--interval", "100ms", "--netns", network.host.path, up, "10.1.0.254:9"],
            environment: ["TERM": "xterm", "LANG": "C.UTF-8"], output: .terminal)
        _ = try program.nextLine(within: patience) { $0.contains("2 targets, every 100ms, ") && $0.contains("times in ms") }
        _ = try program.nextLine(within: patience) {
            $0.hasPrefix(up) && $0.contains("0 %") && $0.contains("▁") || $0.contains("█")
        }
        // The rows are drawn over the former ones.
        _ = try program.nextLine(within: patience) { $0.contains("\u{1b}[") && $0.contains("A\r") }
        try program.signal(SIGINT)
        _ = try program.nextLine(within: patience) { $0.contains("sent  ok") }
        _ = try program.nextLine(within: patience) { $0.hasPrefix(up) && $0.contains("0 %") }
        try expectEqual(program.wait(within: patience), 128 + SIGINT, "\(program.ending)")
        server.close()
    }

    @Test func `probe --live without a terminal is a usage error`() throws {
        for environment in [["TERM": "xterm"], ["TERM": "dumb"]] {
            let program = try Program(
                [Programs.netwatch, "probe", "--live", "127.0.0.1:9"], environment: environment,
                output: environment["TERM"] == "dumb" ? .terminal : .pipe)
            try expectEqual(program.wait(within: patience), 64, "\(program.ending)")
            expectOneLine(program, "--live: standard output is no terminal")
        }
    }

    @Test(arguments: [("sh -c false", Int32(1)), ("/nowhere/program", 127), ("/etc/passwd", 126), ("true", 0)])
    func `wait runs its command and exits with the command's code`(_ command: String, _ code: Int32) throws {
        let network = try makeNetwork()
        let program = try Program(
            [Programs.netwatch, "wait", "--netns", network.host.path, "--"] + command.split(separator: " ").map(String.init))
        // The condition does not hold yet, so the command must not have run.
        #expect(throws: LabError.self) { try program.wait(within: .milliseconds(200)) }
        try network.host.ip("route add default via 10.1.0.254")
        try expectEqual(program.wait(within: patience), code, "\(program.ending)")
    }

    @Test func `watch ends when the reader of its output closes the pipe, without another event`() throws {
        let network = try makeNetwork()
        let pipeline = try Program(
            [
                "bash", "-c", "\"$0\" watch --json --netns \"$1\" | head -1; echo ${PIPESTATUS[0]}", Programs.netwatch,
                network.host.path,
            ])
        try expectEqual(pipeline.nextLine(within: patience)?.contains(#""type":"hello""#), true)
        try expectEqual(pipeline.nextLine(within: patience), "\(128 + SIGPIPE)")
        try expectEqual(pipeline.wait(within: patience), 0, "\(pipeline.ending)")
    }

    // MARK: Hooks

    @Test func `hooks run one at a time, and changes during a hook are reported as one`() throws {
        let network = try makeNetwork()
        let scratch = try ScratchDirectory()
        let (log, gate) = (scratch.file("log"), scratch.file("gate"))
        expectEqual(mkfifo(gate, 0o600), 0)
        // A hook ends once it has read a line of its own. If the writer of the line before still has the pipe open, it finds none, and tries again.
        let hook =
            "echo \"$NETWATCH_TYPE $NETWATCH_STATUS $NETWATCH_INTERFACE $NETWATCH_CAUSE +$NETWATCH_SUPERSEDED\" >> \(log); until read w < \(gate); do :; done"
        let program = try netwatch("watch", "--json", "--exec", hook, host: network.host)
        _ = try program.nextLine()
        try network.host.ip("route add default via 10.1.0.254")
        _ = try program.nextLine { $0.contains(#""gateways":["10.1.0.254"]"#) }
        for last in 1...5 {
            try network.host.ip("route change default via 10.1.0.\(200 + last)")
            _ = try program.nextLine { $0.contains(#""gateways":["10.1.0.\#(200 + last)"]"#) }
        }
        try network.host.ip("link set v0 down")
        _ = try program.nextLine { $0.contains("interface-down") }
        func logged() throws -> [String] {
            try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
        }
        _ = try Program(["sh", "-c", "echo go > \(gate)"]).wait(within: patience)
        // Wait until the second hook has started. Otherwise the first hook could read the second line.
        let end = ContinuousClock.now + patience
        while try logged().count < 2, ContinuousClock.now < end { poll(nil, 0, 20) }
        _ = try Program(["sh", "-c", "echo go > \(gate)"]).wait(within: patience)
        try program.signal(SIGTERM)
        try expectEqual(program.wait(within: patience), 128 + SIGTERM, "\(program.ending)")
        let lines = try logged()
        expectEqual(lines.first, "path satisfied v0  +0")
        #expect(lines.count == 2 && lines[1].hasPrefix("path unsatisfied  link/interface-down +"), "\(lines)")
        #expect(Int(lines.last?.split(separator: "+").last ?? "") ?? 0 >= 5, "\(lines)")
    }

    @Test func `a failed hook is reported and the next one runs; a hook that hangs does not delay the exit`() throws {
        let network = try makeNetwork()
        let program = try netwatch(
            "watch", "--json", "--exec",
            "if [ $NETWATCH_STATUS = satisfied ]; then exit 3; else trap '' TERM; cat > /dev/null; sleep 1000; fi",
            host: network.host)
        _ = try program.nextLine()
        try network.host.ip("route add default via 10.1.0.254")
        _ = try program.nextLine { $0.contains(#""status":"satisfied""#) }
        try network.host.ip("link set v0 down")
        _ = try program.nextLine { $0.contains("interface-down") }
        // The failure is on standard error once the next hook has been started.
        let end = ContinuousClock.now + patience
        while !program.standardError.contains("exit code 3") && ContinuousClock.now < end { poll(nil, 0, 10) }
        expectOneLine(program, "failed with exit code 3")
        try program.signal(SIGINT)
        try expectEqual(program.wait(within: patience), 128 + SIGINT, "\(program.ending)")
    }

    // MARK: Recordings

    @Test func `a recording replays to the same output, and truncated anywhere to the beginning of it`() throws {
        let network = try makeNetwork()
        let scratch = try ScratchDirectory()
        let file = scratch.file("recording")
        let open = try network.router.serve(at: "10.1.0.254")
        let target = "10.1.0.254:\(open.port)"
        let recorder = try netwatch(
            "record", file, "--json", "-v", "--interval", "200ms", target, "[2001:db8::1]:80", host: network.host)
        var lines: [String] = []
        func read(_ words: String) throws {
            _ = try recorder.nextLine(within: patience) {
                lines.append($0)
                return $0.contains(words)
            }
        }
        try read(#""type":"hello""#)
        try read(#""status":"up""#)
        try network.host.ip("route add default via 10.1.0.254")
        try read(#""status":"satisfied""#)
        try network.host.ip("addr add 10.9.0.1/24 dev v0")
        try read("10.9.0.1/24")
        for _ in 0..<3 {
            try network.host.ip("link set v0 down")
            try read("interface-down")
            try network.host.ip("link set v0 up")
            try network.host.ip("route replace default via 10.1.0.254")
            try read(#""status":"satisfied""#)
        }
        try network.router.ip("link set rv0 down")
        try read("no-carrier")
        try recorder.signal(SIGTERM)
        lines += try recorder.remainingLines()
        try expectEqual(recorder.wait(), 128 + SIGTERM, "\(recorder.ending)")

        let replay = try Program([Programs.netwatch, "replay", "--json", "-v", file], output: .file)
        try expectEqual(replay.wait(), 0, "\(replay.ending)")
        expectEqual(replay.output.split(separator: "\n").map(String.init), lines)

        // Replay the beginning of a recording that is truncated anywhere.
        let recording = try String(contentsOfFile: file, encoding: .utf8)
        for cut in stride(from: 0, to: recording.utf8.count, by: max(1, recording.utf8.count / 16)) {
            let text = String(decoding: recording.utf8.prefix(cut), as: UTF8.self)
            let program = try Program([Programs.netwatch, "replay", "--json", "-v", "-"], input: .text(text), output: .file)
            // A last line without its newline may still be complete: the end line of the recording, or a line before a missing
            // one.
            let lineCount = text.split(separator: "\n").count
            let last = text.split(separator: "\n").last ?? ""
            let isLine = cut == 0 || text.hasSuffix("\n") || (try? JSONSerialization.jsonObject(with: Data(last.utf8))) != nil
            let isComplete = isLine && recording.utf8.count - cut <= 1
            try expectEqual(program.wait(), (isComplete ? 0 : 65), "cut at \(cut)")
            if !isComplete { expectOneLine(program, "standard input: line \(lineCount + (isLine ? 1 : 0)): ") }
            let beginning = program.output.split(separator: "\n").map(String.init)
            expectEqual(beginning, Array(lines.prefix(beginning.count)), "cut at \(cut)")
        }
    }

    @Test func `a recording that cannot be written or replayed gives its exit code`() throws {
        let host = try Lab().host()
        let full = try netwatch("record", "/dev/full", "--json", "--for", "300ms", host: host)
        _ = try full.remainingLines()
        let directory = try netwatch("record", "/proc", host: host)
        try expectEqual(directory.wait(), 73, "\(directory.ending)")
        // Opening a FIFO could wait for its reader, and the signals that would end that wait are blocked.
        let pipe = try ScratchDirectory()
        expectEqual(mkfifo(pipe.file("pipe"), 0o600), 0)
        let unread = try netwatch("record", pipe.file("pipe"), host: host, output: .null)
        try expectEqual(unread.wait(), 73, "\(unread.ending)")
        expectOneLine(unread, "cannot create")
        expectOneLine(directory, "/proc")
        for garbage in ["", "\n", "hello\n", "{}\n", "{\"netwatch_recording\":99}\n", "\u{0}\u{1}\u{2}"] {
            let program = try Program([Programs.netwatch, "replay", "-"], input: .text(garbage), output: .file)
            try expectEqual(program.wait(), 65, "\(garbage.debugDescription)")
            expectOneLine(program, "standard input: line 1")
            expectEmpty(program.output)
        }
    }
}
