import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// The built program, started as a shell does. It only reads the state of this machine.
@Suite(.timeLimit(.minutes(20))) struct ProgramTests {
    private func netwatch(
        _ arguments: String..., environment: [String: String?] = [:], input: Program.Input = .empty,
        output: Program.Output = .pipe
    ) throws -> Program {
        try Program([try Programs.netwatch] + arguments, environment: environment, input: input, output: output)
    }

    @Test func `closing the reader ends watch by SIGPIPE`() throws {
        let program = try netwatch("watch", "--json")
        try expectEqual(program.nextLine()?.hasPrefix(#"{"v":1,"seq":0,"#), true)
        program.closeOutput()
        try expectEqual(program.wait(), 128 + SIGPIPE, "\(program.ending)")
        expectEqual(program.standardError, "")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func `a signal ends watch by that signal`(number: Int32) throws {
        let program = try netwatch("watch")
        #expect(try program.nextLine()?.contains(" hello ") == true)
        try program.signal(number)
        try expectEqual(program.wait(), 128 + number, "\(program.ending)")
        expectEqual(program.standardError, "")
    }

    @Test(arguments: ["watch", "status", "schema", "--help"])
    func `a closed standard output is an error`(command: String) throws {
        let program = try netwatch(command, output: .closed)
        try expectEqual(program.wait(), 74, "\(program.ending)")
        expectEqual(program.standardError, "netwatch: standard output: closed, or not open for writing\n")
    }

    @Test func `status probes the targets of the command line and of standard input`() throws {
        let program = try netwatch(
            "status", "--json", "--targets", "-", "127.0.0.1:1", input: .text("# this machine\n[::1]:1\n"))
        let output = try program.remainingLines().joined()
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(output.contains(#""target":"127.0.0.1:1""#) && output.contains(#""target":"[::1]:1""#))
    }

    @Test func `a malformed line of --targets is one line on standard error, with code 65`() throws {
        let program = try netwatch("status", "--targets", "-", input: .text("localhost:1\nlocalhost\n"))
        try expectEqual(program.wait(), 65, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: standard input: line 2: 'localhost': port:"))
        expectEqual(program.standardError.split(separator: "\n").count, 1)
    }

    @Test func `a file and /dev/null receive the stream`() throws {
        // Long enough for a busy machine to know its path.
        let program = try netwatch("watch", "--for", "3s", "--json", output: .file)
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(program.output.split(separator: "\n").count >= 1)
        try expectEqual(netwatch("watch", "--for", "100ms", output: .null).wait(), 0)
    }

    @Test func `output on a terminal is aligned and colored`() throws {
        // Without `--for`: a loaded machine may need longer than any short time for the first line.
        let program = try netwatch(
            "watch", environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": nil], output: .terminal)
        #expect(try program.nextLine()?.contains("netwatch 0.1.0 · this machine") == true)
        #expect(try program.nextLine()?.contains("\u{1b}[") == true)
        let plain = try netwatch("watch", environment: ["TERM": "xterm", "NO_COLOR": "1"], output: .terminal)
        for _ in 0..<2 { #expect(try plain.nextLine()?.contains("\u{1b}") == false) }
    }

    /// The lines of a terminal without control sequences.
    private func shown(_ lines: [String]) -> [String] {
        lines.map { $0.replacing(/\u{1b}\[[0-9;]*[A-Za-z]/, with: "").filter { $0 != "\r" } }
    }

    private func expectWrapped(_ lines: [String], _ text: String) {
        #expect(lines.allSatisfy { $0.count < 80 }, "\(lines)")
        let words = lines.flatMap { $0.split(separator: " ") }.joined(separator: " ")
        // On a busy machine, `wait` may reach its time before the first probe has ended.
        #expect(words.contains(text) || words.contains("is unknown: no probe has ended"), "\(lines)")
    }

    /// Nothing listens on this port.
    private static let cause = "tcp/refused: this machine (127.0.0.1) refuses connections to port 1"

    @Test(
        arguments: [
            (["wait", "--timeout", "100ms"], ["127.0.0.1:1"], cause),
            (["wait", "-v", "--timeout", "100ms"], ["127.0.0.1:1"], cause),
            (["probe", "-c", "1"], ["127.0.0.1:1"], cause),
            (
                ["get", "--timeout", "100ms", "-o"],
                ["/nowhere/a-file", "http://127.0.0.1:1/a-name-that-is-a-little-longer/than-usual"],
                "No such file or directory"
            ),
            (
                ["watch", "--targets"], ["/nowhere/a-file-with-a-rather-long-name-in-a-directory/targets"],
                "No such file"
            ),
        ], ["xterm", "dumb"])
    func `errors and causes on a terminal are broken at words`(
        command: (options: [String], operands: [String], text: String), terminal: String
    ) throws {
        let program = try Program(
            [Programs.netwatch] + command.options + command.operands, environment: ["TERM": terminal, "LC_ALL": "C.UTF-8"],
            output: .terminal, errors: .output)
        try expectWrapped(shown(program.remainingLines()), command.text)
    }

    @Test func `the summary after --live is broken at words`() throws {
        let program = try netwatch(
            "probe", "--live", "--interval", "100ms", "127.0.0.1:1", environment: ["TERM": "xterm", "LC_ALL": "C.UTF-8"],
            output: .terminal)
        _ = try program.nextLine { $0.contains("tcp/refused") }
        try program.signal(SIGINT)
        _ = try program.nextLine { $0.contains("sent  ok") }
        try expectWrapped(shown(program.remainingLines()), Self.cause)
    }

    /// Records until the path is known. - Returns: the stream.
    private func record(to file: String) throws -> [String] {
        let recorder = try netwatch("record", "--json", file)
        let hello = try #require(try recorder.nextLine())
        try recorder.signal(SIGINT)
        let rest = try recorder.remainingLines()
        try expectEqual(recorder.wait(), 128 + SIGINT, "\(recorder.ending)")
        return [hello] + rest
    }

    @Test func `a replay writes the identical stream`() throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let recorded = try record(to: file)
        try expectEqual(netwatch("replay", "--json", file).remainingLines(), recorded)
        let piped = try netwatch("replay", "--json", "-", input: .text(directory.text("recording")))
        try expectEqual(piped.remainingLines(), recorded)
        try expectEqual(piped.wait(), 0, "\(piped.ending)")
    }

    @Test func `a recording is created with mode 0600, and never through a symbolic link`() throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let script = "umask 0; exec \"$0\" record --for 50ms -q \(file)"
        try expectEqual(Program(["sh", "-c", script, try Programs.netwatch]).wait(), 0)
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o7777 == 0o600)
        let link = "\(directory.path)/link"
        expectEqual(symlink(file, link), 0)
        let before = directory.text("recording")
        let recorder = try netwatch("record", "--for", "50ms", "-q", link)
        try expectEqual(recorder.wait(), 73)
        #expect(recorder.standardError.hasSuffix("it is a symbolic link, which is not followed; name the file itself\n"))
        expectEqual(directory.text("recording"), before)
    }

    @Test(arguments: ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
    func `a recording goes to standard output, to a pipe and to a file`(_ name: String) throws {
        let recorder = try netwatch("record", "--for", "50ms", "-q", name)
        let lines = try recorder.remainingLines()
        try expectEqual(recorder.wait(), 0, "\(recorder.ending)")
        #expect(lines.first?.hasPrefix("{\"") == true && lines.last?.contains("netwatch_recording_end") == true)
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let script = "{ echo before; \"$0\" record --for 50ms -q \(name); } > \(file)"
        try expectEqual(Program(["sh", "-c", script, try Programs.netwatch]).wait(), 0)
        let text = directory.text("recording")
        #expect(text.hasPrefix("before\n{") && text.contains("netwatch_recording_end"))
    }

    @Test func `a recording on standard output replaces the records and can be replayed from a pipe`() throws {
        // The hello is not counted and no event occurs, so the target's first record ends the stream.
        let script = "\"$0\" record --json --count 1 - 127.0.0.1:9 | \"$0\" replay --json -"
        let program = try Program(["sh", "-c", script, try Programs.netwatch])
        let lines = try program.remainingLines()
        try expectEqual(program.wait(), 0, "\(program.ending)")
        #expect(lines.first?.contains("\"type\":\"hello\"") == true)
    }

    @Test func `a recording goes to a FIFO and to a shell's process substitution`() throws {
        let directory = try Directory()
        let fifo = "\(directory.path)/fifo"
        expectEqual(mkfifo(fifo, 0o600), 0)
        let out = "\(directory.path)/recording"
        let reading =
            "cat \(fifo) > \(out) & exec 9<>\(fifo); \"$0\" record --for 50ms -q \(fifo); code=$?; exec 9>&-; wait; exit $code"
        try expectEqual(Program(["sh", "-c", reading, try Programs.netwatch]).wait(), 0)
        #expect(directory.text("recording").contains("netwatch_recording_end"))
        let substitution = "\"$0\" record --for 50ms -q >(cat > \(out)2); code=$?; wait $!; exit $code"
        try expectEqual(Program(["bash", "-c", substitution, try Programs.netwatch]).wait(), 0)
        #expect(directory.text("recording2").contains("netwatch_recording_end"))
    }

    @Test(arguments: [SIGINT, SIGTERM]) func `a recording that a signal ends is complete`(number: Int32) throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let recorder = try netwatch("record", "--json", file)
        var recorded = [try #require(try recorder.nextLine())]
        try recorder.signal(number)
        recorded += try recorder.remainingLines()
        try expectEqual(recorder.wait(), 128 + number, "\(recorder.ending)")
        let replay = try netwatch("replay", "--json", file)
        try expectEqual(replay.remainingLines(), recorded)
        try expectEqual(replay.wait(), 0, "\(replay.ending)")
    }

    @Test func `replay of a recording cut by SIGKILL writes its records and reports the cut`() throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let recorder = try netwatch("record", "--json", file)
        let hello = try recorder.nextLine()
        // The hello belongs to a turn that has ended. Each turn is written completely, soon after its end.
        let end = ContinuousClock.now + .seconds(120)
        var held: String?
        while held == nil, ContinuousClock.now < end {
            let replay = try netwatch("replay", "--json", file)
            held = try replay.nextLine()
            try expectEqual(replay.wait(), 65, "\(replay.ending)")
            #expect(replay.standardError.hasSuffix(": is missing: the recording ends early\n"))
        }
        try recorder.signal(SIGKILL)
        try expectEqual(recorder.wait(), 128 + SIGKILL, "\(recorder.ending)")
        let replay = try netwatch("replay", "--json", file)
        try expectEqual(replay.nextLine(), hello)
        try expectEqual(replay.wait(), 65, "\(replay.ending)")
        let count = directory.text("recording").split(separator: "\n").count
        expectEqual(replay.standardError, "netwatch: \(file): line \(count + 1): is missing: the recording ends early\n")
    }

    @Test func `a recording that cannot be written to its end is reported as incomplete`() throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        // The limit is set while the program runs, because ThreadSanitizer's start needs large files. Beyond the limit, writing
        // fails with EFBIG instead of a signal.
        let script = "trap '' XFSZ; exec \"$0\" record --json \(file)"
        let recorder = try Program(["sh", "-c", script, try Programs.netwatch])
        _ = try recorder.nextLine()
        try expectEqual(Program(["prlimit", "--pid", "\(recorder.processID)", "--fsize=512"]).wait(), 0)
        try recorder.signal(SIGTERM)
        _ = try recorder.wait()
        #expect(recorder.standardError.contains("netwatch: \(file): the recording ends early: File too large\n"))
        try expectEqual(netwatch("replay", "--json", file).wait(), 65)
    }

    @Test func `a damaged recording names its line and keeps earlier records`() throws {
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let recorded = try record(to: file)
        let text = directory.text("recording")
        let program = try netwatch("replay", "--json", "-", input: .text(text + "garbage\n"))
        try expectEqual(program.remainingLines(), recorded)
        try expectEqual(program.wait(), 65, "\(program.ending)")
        let line = text.split(separator: "\n").count + 1
        #expect(program.standardError.hasPrefix("netwatch: standard input: line \(line): "))
        expectEqual(program.standardError.split(separator: "\n").count, 1)
    }

    @Test func `files and namespaces that cannot be created or found have their exit codes`() throws {
        let recorder = try netwatch("record", "/nowhere/recording")
        try expectEqual(recorder.wait(), 73, "\(recorder.ending)")
        expectEqual(recorder.standardError, "netwatch: /nowhere/recording: cannot create: No such file or directory\n")
        let watcher = try netwatch("watch", "--netns", "netwatch-no-such")
        try expectEqual(watcher.wait(), 66, "\(watcher.ending)")
        #expect(watcher.standardError.hasPrefix("netwatch: --netns netwatch-no-such: "))
    }

    @Test func `help and version go to standard output`() throws {
        try expectEqual(netwatch("--version").remainingLines(), ["0.1.0"])
        #expect(try netwatch().remainingLines().first?.hasPrefix("netwatch 0.1.0: ") == true)
        for arguments in [["--help"], ["watch", "--help"], ["help", "wait"]] {
            let program = try Program([try Programs.netwatch] + arguments)
            #expect(try program.remainingLines().contains { $0.hasPrefix("USAGE: netwatch") })
            try expectEqual(program.wait(), 0, "\(program.ending)")
            expectEqual(program.standardError, "")
        }
    }
}
