import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch

/// The built program in a separate network namespace.
@Suite(.requiresNamespaces, .timeLimit(.minutes(20))) struct ProgramLabTests {
    /// A host with an uplink to a router.
    private struct Place {
        let lab = Lab()
        let host: LabHost
        let router: LabHost

        init() throws {
            (host, router) = (try lab.namedHost(loopback: true), try lab.host())
            try lab.connect(host, "up0", router, "down0")
            try router.ip("link set down0 up")
            try host.ip("link set up0 up")
            try host.ip("address add 192.0.2.7/24 dev up0")
        }

        func netwatch(_ arguments: String..., output: Program.Output = .pipe) throws -> Program {
            try Program([try Programs.netwatch] + arguments + ["--netns", host.name ?? ""], output: output)
        }
    }

    struct Line: Decodable {
        struct Cause: Decodable {
            var layer: String
            var code: String
        }

        var seq: Int
        var type: String
        var status: String?
        var interface: String?
        var cause: Cause?
    }

    private func decode(_ line: String?) throws -> Line {
        try JSONDecoder().decode(Line.self, from: Data(try #require(line).utf8))
    }

    @Test func `a default route that is added and removed is reported`() throws {
        let place = try Place()
        let program = try place.netwatch("watch", "--json", "--count", "2")
        try expectEqual(decode(program.nextLine()).type, "hello")
        try place.host.ip("route add default via 192.0.2.1")
        let gain = try decode(program.nextLine())
        expectEqual(gain.seq, 1)
        expectEqual(gain.type, "path")
        expectEqual(gain.status, "satisfied")
        expectEqual(gain.interface, "up0")
        try place.host.ip("route del default")
        let loss = try decode(program.nextLine())
        expectEqual(loss.seq, 2)
        expectEqual(loss.status, "unsatisfied")
        expectEqual(loss.cause?.layer, "route")
        expectEqual(loss.cause?.code, "no-route")
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(program.standardError, "")
    }

    @Test func `hooks run on changes`() throws {
        let place = try Place()
        let directory = try Directory()
        let command = "cat >> \(directory.path)/records; echo $NETWATCH_STATUS $NETWATCH_INTERFACE >> \(directory.path)/runs"
        let program = try place.netwatch("watch", "--json", "--count", "1", "--exec", command)
        let hello = try decode(program.nextLine())
        expectEqual(hello.type, "hello")
        try place.host.ip("route add default via 192.0.2.1")
        let lines = try program.remainingLines()
        try expectEqual(program.wait(), 0, "\(program.ending)")
        expectEqual(directory.text("records").split(separator: "\n").map(String.init), lines)
        expectEqual(directory.text("runs"), "satisfied up0\n")
    }

    @Test(arguments: [SIGTERM, SIGINT]) func `a different second signal also kills a running hook`(number: Int32) throws {
        for attempt in 1...3 {
            let program = try endTwiceDuringAHook(by: number)
            // On a loaded machine, the hook's grace of one second may end first.
            if attempt == 3 || !program.standardError.contains("still ran at the end") {
                expectEqual(program.standardError, "")
                return
            }
        }
    }

    private func endTwiceDuringAHook(by number: Int32) throws -> Program {
        let place = try Place()
        let directory = try Directory()
        let fifo = "\(directory.path)/alive"
        try #require(mkfifo(fifo, 0o600) == 0)
        // The hook and its child hold the FIFO open for writing, so its reader reaches the end when both have ended.
        let command = "exec 3> \(fifo); trap '' TERM INT; sleep 600 & echo ready >&3; wait"
        let program = try place.netwatch("watch", "--json", "--exec", command)
        _ = try program.nextLine()
        try place.host.ip("route add default via 192.0.2.1")
        let reader = try #require(fopen(fifo, "r"))
        defer { fclose(reader) }
        expectEqual(fgetc(reader), Int32(UInt8(ascii: "r")))
        try program.signal(number)
        // When the program no longer blocks the signal, it has handled the first one. The same one again counts only after 500 ms.
        while !isUnblocked(number, program.processID) {}
        try program.signal(number)
        let other = number == SIGTERM ? SIGINT : SIGTERM
        try program.signal(other)
        try expectEqual(program.wait(), 128 + other, "\(program.ending)")
        let end = ContinuousClock.now + .seconds(300)
        while fgetc(reader) != EOF {}
        #expect(ContinuousClock.now < end, "the hook has outlived the program")
        return program
    }

    private func isUnblocked(_ number: Int32, _ process: Int32) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let mask = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }.flatMap { UInt64($0.suffix(16), radix: 16) }
        return mask.map { $0 & 1 << UInt64(number - 1) == 0 } ?? true
    }

    @Test func `wait ends when the path is satisfied and runs the command`() throws {
        let place = try Place()
        let program = try Program(
            [try Programs.netwatch, "wait", "--netns", try #require(place.host.name), "--", "sh", "-c", "echo ran; exit 7"])
        try place.host.ip("route add default via 192.0.2.1")
        try expectEqual(program.remainingLines(), ["ran"])
        try expectEqual(program.wait(), 7, "\(program.ending)")
        expectEqual(program.standardError, "")
    }

    @Test func `wait times out with the reason without any event`() throws {
        let place = try Place()
        let program = try place.netwatch("wait", "--timeout", "300ms")
        try expectEqual(program.wait(), 124, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: wait: timed out after 300ms: path unsatisfied, route/no-route: "))
        try expectEqual(program.remainingLines(), [])
    }

    @Test func `wait names the cause of failed probes before the target is down`() throws {
        let place = try Place()
        let program = try place.netwatch("wait", "--timeout", "1s", "--fail-after", "1000", "127.0.0.1:5")
        try expectEqual(program.wait(), 124, "\(program.ending)")
        #expect(program.standardError.hasPrefix("netwatch: wait: timed out after 1s: 127.0.0.1:5: tcp/refused: "))
    }

    @Test func `SIGINT ends wait in the background of a script`() throws {
        let place = try Place()
        // SIGINT is ignored, as in a background job of a shell without job control.
        let program = try Program(
            ["sh", "-c", "trap '' INT; exec \"$0\" wait --netns \"$1\"", try Programs.netwatch, try #require(place.host.name)])
        var code: Int32?
        while code == nil {
            try program.signal(SIGINT)
            code = try? program.wait(within: .milliseconds(50))
        }
        expectEqual(code, 128 + SIGINT)
    }

    @Test func `the command of wait inherits ignored signals`() throws {
        let place = try Place()
        try place.host.ip("route add default via 192.0.2.1")
        let script = "trap '' INT; exec \"$0\" wait --netns \"$1\" -- grep SigIgn /proc/self/status"
        let program = try Program(["sh", "-c", script, try Programs.netwatch, try #require(place.host.name)])
        let mask = UInt64(try #require(try program.remainingLines().first).suffix(16), radix: 16)
        #expect((mask.map { $0 & 1 << (SIGINT - 1) != 0 }) == true)
        try expectEqual(program.wait(), 0, "\(program.ending)")
    }

    @Test func `the status of a target is its first record`() throws {
        let place = try Place()
        let program = try place.netwatch("status", "--json", "127.0.0.1:5")
        try expectEqual(program.remainingLines().first?.contains(#""initial":true}"#), true)
        try expectEqual(program.wait(), 1, "\(program.ending)")
    }

    @Test func `a recording is complete after --count and after its namespace is deleted`() throws {
        let place = try Place()
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        func expectWhole(_ lines: [String]) throws {
            let replay = try Program([try Programs.netwatch, "replay", "--json", file])
            // The recording may have more events than the requested number of records.
            try expectEqual(Array(replay.remainingLines().prefix(lines.count)), lines)
            try expectEqual(replay.wait(), 0, "\(replay.ending)")
        }
        let counting = try place.netwatch("record", file, "--json", "--count", "1")
        let hello = try #require(try counting.nextLine())
        try place.host.ip("route add default via 192.0.2.1")
        let counted = [hello] + (try counting.remainingLines())
        try expectEqual(counting.wait(), 0, "\(counting.ending)")
        try expectWhole(counted)

        let program = try place.netwatch("record", file, "--json")
        let first = try #require(try program.nextLine())
        try place.host.deleteName()
        let lines = [first] + (try program.remainingLines())
        try expectEqual(program.wait(), 1, "\(program.ending)")
        try expectWhole(lines)
    }

    @Test func `a second signal right after the first one leaves a complete recording`() throws {
        let place = try Place()
        let directory = try Directory()
        let file = "\(directory.path)/recording"
        let program = try place.netwatch("record", file, "--json", "192.0.2.9:80")
        _ = try #require(try program.nextLine())
        // Two equal signals would become one while the first is pending.
        try program.signal(SIGTERM)
        try program.signal(SIGINT)
        let code = try program.wait()
        #expect(code == 128 + SIGTERM || code == 128 + SIGINT, "\(program.ending)")
        let replay = try Program([try Programs.netwatch, "replay", "--json", file])
        #expect(try !replay.remainingLines().isEmpty)
        try expectEqual(replay.wait(), 0, "\(replay.ending)")
        expectEqual(replay.standardError, "")
    }

    @Test func `a second signal ends a recording that a pipe delays for more than a second`() throws {
        let place = try Place()
        let directory = try Directory()
        let fifo = "\(directory.path)/recording"
        try #require(mkfifo(fifo, 0o600) == 0)
        // Nobody reads the recording.
        let reader = open(fifo, O_RDWR | O_CLOEXEC)
        defer { close(reader) }
        // F_SETPIPE_SZ, which Swift does not import.
        let size = fcntl(reader, 1031, 4096)
        #expect(size > 0)
        let program = try place.netwatch("record", fifo, "--json", "--interval", "10ms", "127.0.0.1:5", "127.0.0.1:6")
        // The inputs before the first record are longer than the pipe.
        _ = try #require(try program.nextLine())
        // Before the first signal: the program's second begins with it.
        let start = ContinuousClock.now
        try program.signal(SIGTERM)
        try program.signal(SIGINT)
        let code = try program.wait()
        #expect(code == 128 + SIGTERM || code == 128 + SIGINT, "\(program.ending)")
        #expect(ContinuousClock.now - start > .milliseconds(900))
    }

    @Test func `status is printed for every exit code`() throws {
        let place = try Place()
        let unsatisfied = try place.netwatch("status", "--json")
        try expectEqual(unsatisfied.remainingLines().count, 1)
        try expectEqual(unsatisfied.wait(), 1, "\(unsatisfied.ending)")
        try place.host.ip("route add default via 192.0.2.1")
        let satisfied = try place.netwatch("status", "-v")
        #expect(try satisfied.remainingLines().first?.contains("satisfied  via up0 (wired), IPv4") == true)
        try expectEqual(satisfied.wait(), 0, "\(satisfied.ending)")
    }

    @Test func `deleting the namespace ends watch`() throws {
        let place = try Place()
        let program = try place.netwatch("watch", "--json")
        try expectEqual(decode(program.nextLine()).type, "hello")
        try place.host.deleteName()
        let lines = try program.remainingLines()
        try expectEqual(decode(lines.last).cause?.code, "no-interface")
        try expectEqual(program.wait(), 1, "\(program.ending)")
        #expect(program.standardError.hasSuffix(": it no longer exists, so there is nothing to watch\n"))
    }
}
