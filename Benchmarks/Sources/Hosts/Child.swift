import Foundation
import Glibc
import Synchronization

/// A measured program, or one that causes the measured events. It is killed when this process ends, however that happens, unless
/// it has to clean up afterwards.
package final class Child: Sendable {
    /// A line of output and the moment at which it was read, `CLOCK_MONOTONIC` in nanoseconds.
    package struct Line: Sendable {
        package let moment: Int64
        package let text: String
    }

    package enum Output {
        case null
        /// Output that is kept line by line, with the time of each line.
        case lines
    }

    package let processID: Int32
    private let lines = Mutex<[Line]>([])
    private let reader = DispatchGroup()

    /// Starts `command` in a host's network namespace (`nil`: this process's own), with an open file as its standard input.
    package init(
        _ command: [String], in host: LabHost? = nil, input: Int32? = nil, output: Output = .null, outlivesParent: Bool = false
    ) throws {
        let entry = host.map { ["nsenter", "--net=\($0.path)", "--"] } ?? []
        var pipe: [Int32] = [-1, -1]
        if case .lines = output {
            guard Glibc.pipe(&pipe) == 0 else { throw BenchmarkError("pipe: errno \(errno)") }
            for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        }
        // The kernel signals the parent's death. exec keeps the process id, so signals reach the program itself.
        let leash = outlivesParent ? [] : ["setpriv", "--pdeathsig", "KILL", "--"]
        processID = try Self.spawn(leash + entry + command, input: input, output: pipe[1])
        guard case .lines = output else { return }
        close(pipe[1])
        let descriptor = pipe[0]
        reader.enter()
        Thread.detachNewThread { [self] in
            read(descriptor)
            reader.leave()
        }
    }

    // posix_spawn(3) is called directly, because Foundation's Process notices an end up to 50 ms late.
    private static func spawn(_ words: [String], input: Int32?, output: Int32) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        if output >= 0 {
            posix_spawn_file_actions_adddup2(&actions, output, 1)
        } else {
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        }
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        // Threads of a pool block signals, and a program that they start would never receive SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var process: Int32 = 0
        let failure = posix_spawnp(&process, words[0], &actions, &attributes, &arguments, environ)
        guard failure == 0 else { throw BenchmarkError("\(words[0]): errno \(failure)") }
        return process
    }

    // Runs a thread that only waits in read(2), like a program behind a pipe.
    private func read(_ descriptor: Int32) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var pending: [UInt8] = []
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            let moment = Clock.now()
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { break }
            pending.append(contentsOf: buffer[..<count])
            let parts = pending.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            guard parts.count > 1 else { continue }
            let found = parts.dropLast().map { Line(moment: moment, text: String(decoding: $0, as: UTF8.self)) }
            pending = parts.last.map(Array.init) ?? []
            lines.withLock { $0 += found }
        }
        close(descriptor)
    }

    /// The lines so far.
    package var output: [Line] { lines.withLock { $0 } }

    /// Waits for a line that fulfills the condition.
    package func await(_ what: String, within seconds: Double = 60, _ condition: (String) -> Bool) throws -> Line {
        let end = Clock.now() + Int64(seconds * 1e9)
        while Clock.now() < end {
            if let line = output.first(where: { condition($0.text) }) { return line }
            usleep(1000)
        }
        throw BenchmarkError("\(what) did not come within \(seconds) s")
    }

    /// Waits for the program's end, once. - Returns: its exit code, or 128 + the signal that ended it.
    @discardableResult
    package func wait() -> Int32 { waitWithUsage().code }

    /// Waits like ``wait()``. - Returns: also the processor time, user and system, in nanoseconds, and the peak resident memory.
    package func waitWithUsage() -> (code: Int32, processorTime: Double, peakKibibytes: Double) {
        var status: Int32 = 0
        var usage = rusage()
        while wait4(processID, &status, 0, &usage) < 0 && errno == EINTR {}
        reader.wait()
        let seconds = Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        let microseconds = Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
        let code = status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
        return (code, seconds * 1e9 + microseconds * 1e3, Double(usage.ru_maxrss))
    }

    /// Sends SIGTERM and waits for the program's end.
    package func stop() {
        kill(processID, SIGTERM)
        wait()
    }

    /// Runs a program to its end. - Throws: if its exit code is not 0.
    package static func run(_ command: [String], in host: LabHost? = nil, input: Int32? = nil) throws {
        let code = try Child(command, in: host, input: input).wait()
        guard code == 0 else { throw BenchmarkError("\(command.joined(separator: " ")): exit code \(code)") }
    }
}

package struct BenchmarkError: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

package enum Clock {
    /// `CLOCK_MONOTONIC` in nanoseconds, the clock of every program here.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
