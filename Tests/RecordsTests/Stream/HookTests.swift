import CLinux
import Expectations
import Foundation
import Glibc
import Pacing
import NetworkLab
import Reachability
import RecordSamples
import EventLoop
import Testing

@testable import Console
@testable import Records

@Suite(.timeLimit(.minutes(20))) struct HookTests {
    /// Runs a quiet stream of these events with a hook until all hooks have run. Returns the reported messages.
    private func run(
        _ events: [MonitorEvent], _ command: String, timeLimit: Duration = Hooks.timeLimit
    ) throws -> [String] {
        netwatch_signal_ignore(SIGPIPE)
        let reports = Locked([String]())
        let settings = RecordStream.Settings(isQuiet: true, hookCommand: command, hookTimeLimit: timeLimit)
        let stream = try RecordStream(settings, output: nil, signals: nil) { failure in
            reports.withLock { $0.append(failure.message) }
        }
        try expectEqual(stream.run(Script(events: [Samples.hello] + events + [.ended(Samples.moment(99))]).start), .monitorEnded)
        return reports.withLock { $0 }
    }

    @Test func `a hook receives the record and the variables`() throws {
        let directory = try ScratchDirectory()
        // The hook must not inherit this process's arguments.
        let others = ProcessInfo.processInfo.environment.keys.filter { $0.hasPrefix("NETWATCH_") }
        let unset = others.map { "unset \($0); " }.joined()
        let command = "cd \(directory.path); cat > record; \(unset)env | grep ^NETWATCH_ | sort > variables"
        try expectEqual(run([Samples.path()], command), [])
        expectEqual(directory.text("record"), Samples.text(Samples.path()) + "\n")
        expectEqual(
            directory.text("variables"),
            """
            NETWATCH_ADDRESS=
            NETWATCH_CAUSE=link/no-carrier
            NETWATCH_DETAIL=eth0 has no carrier
            NETWATCH_INTERFACE=
            NETWATCH_INTERFACE_TYPE=
            NETWATCH_SEQ=1
            NETWATCH_STATUS=unsatisfied
            NETWATCH_SUPERSEDED=0
            NETWATCH_TARGET=
            NETWATCH_TS=2026-08-02T12:00:01.000Z
            NETWATCH_TYPE=path

            """)
    }

    @Test func `queued changes are replaced by newer ones and counted`() throws {
        let directory = try ScratchDirectory()
        let events =
            (1...5).map { Samples.path(at: Double($0)) } + [
                Samples.server(at: 6), Samples.server(1, at: 7), Samples.probe(), Samples.incident(),
            ]
        let command = "echo $NETWATCH_TYPE $NETWATCH_SEQ $NETWATCH_SUPERSEDED >> \(directory.path)/runs"
        try expectEqual(run(events, command), [])
        expectEqual(directory.text("runs"), "path 5 4\ntarget 6 0\ntarget 7 0\n")
    }

    @Test func `no hook runs for a failure that does not change the status, and for its end`() throws {
        let directory = try ScratchDirectory()
        let events = [
            Samples.server(initial: true), Samples.server(pending: Samples.refused, at: 2), Samples.server(at: 3),
            Samples.server(pending: Samples.refused, at: 4),
            Samples.server(0, "192.0.2.9:22", .down, cause: Samples.refused, at: 5),
        ]
        try expectEqual(run(events, "echo $NETWATCH_STATUS $NETWATCH_SEQ >> \(directory.path)/runs"), [])
        expectEqual(directory.text("runs"), "down 5\n")
    }

    @Test func `a failed hook is reported`() throws {
        try expectEqual(run([Samples.path()], "exit 3"), ["--exec: 'exit 3' failed with exit code 3"])
        try expectEqual(
            run([Samples.path()], "exit 3 # http://bob:secret@host/"),
            ["--exec: 'exit 3 # http://bob:***@host/' failed with exit code 3"])
        try expectEqual(run([Samples.path()], "kill -9 $$"), ["--exec: 'kill -9 $$' ended by signal 9"])
    }

    @Test func `a hook that hangs is killed with its children`() throws {
        let directory = try ScratchDirectory()
        let command = "sleep 1000 & echo $! > \(directory.path)/child; wait"
        let reports = try run([Samples.path()], command, timeLimit: .milliseconds(500))
        expectEqual(reports, ["--exec: '\(command)' took longer than 500ms and was killed"])
        let child = try #require(pid_t(directory.text("child").trimmingCharacters(in: .whitespacesAndNewlines)))
        // After SIGKILL the process ends soon; -1 if it has already ended.
        var ending = pollfd(fd: netwatch_pidfd_open(child), events: Int16(POLLIN), revents: 0)
        #expect(ending.fd < 0 || poll(&ending, 1, 20_000) == 1)
        close(ending.fd)
    }

    @Test func `a hook that ignores SIGTERM at the end is killed and reported`() throws {
        let directory = try ScratchDirectory()
        let fifo = "\(directory.path)/ready"
        expectEqual(mkfifo(fifo, 0o600), 0)
        let reports = Locked([String]())
        let command = "trap '' TERM; echo > \(fifo); sleep 1000"
        let hooks = Hooks(command: command, encoder: Samples.encoder) { failure in reports.withLock { $0.append(failure.message) }
        }
        hooks.receive(Record(event: Samples.path(), seq: 1))
        hooks.advance(now: 0)
        // Returns when the hook, which ignores SIGTERM by then, has opened the FIFO too.
        close(open(fifo, O_RDONLY))
        hooks.end(now: 5)
        hooks.advance(now: 5 + Hooks.grace.saturatingNanoseconds)
        while !hooks.isIdle {
            var polling = Polling()
            hooks.watch(&polling)
            polling.wait(until: MonotonicClock.now() + 50_000_000)
            hooks.advance(now: 6 + Hooks.grace.saturatingNanoseconds)
        }
        expectEqual(
            reports.withLock { $0 }, ["--exec: '\(command)' still ran at the end, ignored SIGTERM and was killed"])
    }

    @Test func `a hook that does not read its input does not block the program`() throws {
        let interfaces = (1...3000).map {
            NetworkInterface(
                name: "veth\($0)", index: UInt32($0), type: .wired, isVirtual: true, isExpensive: false, level: .carrier,
                addresses: [])
        }
        let path = NetworkPath(status: .unsatisfied, interfaces: interfaces, cause: Samples.noCarrier)
        try expectEqual(run([Samples.path(path)], "exec <&-; exit 0"), [])
        let directory = try ScratchDirectory()
        try expectEqual(run([Samples.path(path)], "wc -l > \(directory.path)/lines"), [])
        expectEqual(directory.text("lines"), "1\n")
    }

    @Test func `a hook inherits no descriptors and no signal dispositions`() throws {
        let directory = try ScratchDirectory()
        // The programs inspect themselves by exec, because the state of the shell changes between its steps.
        try expectEqual(run([Samples.path()], "exec ls /proc/self/fd > \(directory.path)/files"), [])
        // Descriptor 3 is the directory that ls itself has open.
        expectEqual(directory.text("files"), "0\n1\n2\n3\n")
        try expectEqual(run([Samples.path()], "exec grep -E '^Sig(Blk|Ign)' /proc/self/status > \(directory.path)/signals"), [])
        let masks = directory.text("signals").split(separator: "\n").compactMap { UInt64($0.suffix(16), radix: 16) }
        // Signals 32 and 33 are internal to glibc; posix_spawn(3) ignores them in every child.
        expectEqual(masks.map { $0 & ~0x1_8000_0000 }, [0, 0])
    }
}
