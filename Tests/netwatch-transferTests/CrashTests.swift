import Expectations
import Foundation
import Glibc
import NetworkLab
import Testing

/// Crashes of both programs: their exit status in a shell, and their report. Under sanitizers, the sanitizers report crashes.
@Suite(.skippedUnderSanitizers, .timeLimit(.minutes(10))) struct CrashTests {
    enum Command: String, CaseIterable {
        case watch, get

        /// The arguments of a command that does not end without a signal: port 1 is closed.
        var arguments: [String] {
            switch self {
            case .watch: ["watch", "--json"]
            case .get: ["get", "--json", "http://127.0.0.1:1/crash"]
            }
        }
    }

    private let folder: ProgramFolder

    init() throws { folder = try ProgramFolder() }

    @Test(
        arguments: Command.allCases,
        [(SIGILL, "SIGILL"), (SIGTRAP, "SIGTRAP"), (SIGABRT, "SIGABRT"), (SIGSEGV, "SIGSEGV"), (SIGQUIT, "SIGQUIT")])
    func `a crash signal ends the program with a backtrace in less than 1 s of processor time`(
        command: Command, signal: (number: Int32, name: String)
    ) throws {
        let program = try folder.run(command.arguments)
        _ = try program.nextLine()
        try program.signal(signal.number)
        try expectEqual(program.wait(), 128 + signal.number, "\(program.ending)")
        #expect(program.processorTime < .seconds(1))
        let lines = program.standardError.split(separator: "\n")
        let report = lines.firstIndex { $0.hasPrefix("netwatch: ") && $0.contains(": \(signal.name) from process \(getpid()) ") }
        let backtrace = try lines.dropFirst(#require(report, "\(program.ending)") + 1)
        #expect((2...32).contains(backtrace.count) && backtrace.allSatisfy { $0.hasPrefix("  /") }, "\(program.ending)")
        #expect(backtrace.contains { $0.contains("/netwatch") }, "\(program.ending)")
    }

    @Test(arguments: Command.allCases, [SIGSEGV, SIGQUIT])
    func `a crash on a terminal asks no question`(command: Command, number: Int32) throws {
        let program = try folder.run(
            command.arguments, environment: ["TERM": "xterm", "SWIFT_BACKTRACE": nil], input: .terminal, output: .terminal,
            errors: .output)
        _ = try program.nextLine()
        try program.signal(number)
        try expectEqual(program.wait(), 128 + number, "\(program.ending)")
        #expect(program.processorTime < .seconds(1))
        let lines = try program.remainingLines()
        #expect(lines.contains { $0.hasPrefix("netwatch: ") && $0.contains("SIG") })
        // The question of Swift's backtracer, which would wait for half a minute.
        #expect(!lines.contains { $0.contains("Press space") }, "\(lines)")
    }

    /// A fault that is injected into the program on SIGUSR1, with its exit status and its report.
    enum Fault: String, CaseIterable {
        case null, trap, abort, recursion, thread, loop

        var number: Int32 {
            switch self {
            case .null, .recursion, .thread: SIGSEGV
            case .trap, .loop: SIGILL
            case .abort: SIGABRT
            }
        }

        var report: String {
            switch self {
            case .null: "netwatch: crashed: SIGSEGV at address 0x10 in thread netwatch"
            case .recursion: "netwatch: crashed: SIGSEGV at address 0x"
            case .thread: "netwatch: crashed: SIGSEGV at address 0x10 in thread other"
            case .trap: "netwatch: crashed: SIGILL in thread netwatch"
            // Sent to the monitor's thread, which blocks all signals except crash signals.
            case .loop: "netwatch: crashed: SIGILL in thread netwatch"
            case .abort: "netwatch: crashed: SIGABRT in thread netwatch"
            }
        }
    }

    @Test(.requires("/usr/bin/cc"), arguments: Command.allCases, Fault.allCases)
    func `a crash in the program ends it by its signal with a backtrace`(command: Command, fault: Fault) throws {
        let library = try Self.library.get()
        let program = try folder.run(
            command.arguments, environment: ["LD_PRELOAD": library.file("fault.so"), "FAULT": fault.rawValue])
        _ = try program.nextLine()
        try program.signal(SIGUSR1)
        try expectEqual(program.wait(within: .seconds(120)), 128 + fault.number, "\(program.ending)")
        #expect(program.standardError.contains(fault.report), "\(program.ending)")
        if fault != .loop { #expect(program.standardError.contains("/fault.so+0x"), "\(program.ending)") }
    }

    @Test func `a crash ends the program although nobody reads the report`() throws {
        // A full pipe blocks the report: the program gives up after half a second. Without that limit it would not end.
        let script = "mkfifo pipe; exec 3<>pipe; head -c 65536 /dev/zero >&3; exec \"$0\" watch --json 2>&3"
        let program = try Program(["sh", "-c", script, Programs.netwatch], directory: folder.path)
        _ = try program.nextLine()
        try program.signal(SIGSEGV)
        try expectEqual(program.wait(), 128 + SIGSEGV, "\(program.ending)")
    }

    @Test func `SIGQUIT ignored by a shell ends the program and stays ignored for the command of wait`() throws {
        let program = try Program(["sh", "-c", "trap '' QUIT; exec \"$0\" watch --json", Programs.netwatch])
        _ = try program.nextLine()
        try program.signal(SIGQUIT)
        try expectEqual(program.wait(), 128 + SIGQUIT, "\(program.ending)")
        let ignored = "trap '' QUIT; exec \"$0\" wait -- grep SigIgn /proc/self/status"
        let wait = try Program(["sh", "-c", ignored, Programs.netwatch])
        let mask = try #require(try wait.nextLine()?.split(whereSeparator: \.isWhitespace).last)
        #expect(try #require(UInt64(mask, radix: 16)) & 1 << UInt64(SIGQUIT - 1) != 0)
    }

    private static let library = Result {
        let directory = try ScratchDirectory()
        let source = """
            #include <dirent.h>
            #include <pthread.h>
            #include <signal.h>
            #include <stdlib.h>
            #include <string.h>
            #include <sys/prctl.h>
            #include <sys/syscall.h>
            #include <unistd.h>
            static volatile int sink;
            static int deeper(int depth) { volatile char frame[512]; frame[0] = (char)depth; return deeper(depth + 1) + frame[0]; }
            static void *other(void *name) { prctl(PR_SET_NAME, name); *(volatile int *)16 = 1; return NULL; }
            static void fail(int number) {
                const char *fault = getenv("FAULT");
                pthread_t thread;
                if (!strcmp(fault, "null")) *(volatile int *)16 = number;
                if (!strcmp(fault, "trap")) __builtin_trap();
                if (!strcmp(fault, "abort")) abort();
                if (!strcmp(fault, "recursion")) sink = deeper(1);
                if (!strcmp(fault, "loop")) {
                    DIR *tasks = opendir("/proc/self/task");
                    struct dirent *task;
                    while ((task = readdir(tasks)))
                        if (atoi(task->d_name) > 0 && atoi(task->d_name) != getpid()) break;
                    syscall(SYS_tgkill, getpid(), atoi(task->d_name), SIGILL);
                    return;
                }
                pthread_create(&thread, NULL, other, "other");
                pthread_join(thread, NULL);
            }
            __attribute__((constructor)) static void prepare(void) { signal(SIGUSR1, fail); }
            """
        try Data(source.utf8).write(to: URL(fileURLWithPath: directory.file("fault.c")))
        let options = ["-O0", "-shared", "-fPIC", "-w", "-pthread"]
        let compiler = try Program(["/usr/bin/cc"] + options + ["-o", directory.file("fault.so"), directory.file("fault.c")])
        guard try compiler.wait() == 0 else { throw CompilationError(message: compiler.standardError) }
        return directory
    }

    struct CompilationError: Error {
        let message: String
    }
}
