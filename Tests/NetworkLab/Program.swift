import CLinux
import Foundation
import Glibc
import EventLoop

/// A running program. It and its children form one process group. The group is killed when the last reference to this object is
/// released, when the program is reaped, and when the test process ends, even by SIGKILL.
public final class Program: Sendable {
    /// The program's standard input, descriptor 0.
    public enum Input: Sendable {
        case empty
        case text(String)
        /// A pipe that ``Program/write(_:)`` writes to.
        case pipe
        /// The terminal of ``Output/terminal``.
        case terminal
        case closed
    }

    /// The program's standard output, descriptor 1.
    public enum Output: Sendable {
        /// A pipe that is read line by line while the program runs.
        case pipe
        /// A regular file, read with ``Program/output``. Epoll refuses it, as it refuses a shell's `> FILE`.
        case file
        /// A terminal. Its lines are read like those of a pipe and end with a carriage return.
        case terminal
        /// A terminal of 200 columns from the start, in which every sentence is one line.
        case wideTerminal
        case null
        /// A closed descriptor 1.
        case closed
    }

    /// The program's standard error, descriptor 2.
    public enum Errors: Sendable {
        /// A file that is read with ``Program/standardError``.
        case file
        /// A duplicate of descriptor 1. With ``Output/terminal`` it carries the output that a person sees.
        case output
        /// A closed descriptor 2.
        case closed
    }

    /// The number of the process and of its process group.
    public let processID: Int32
    private let name: String
    private let pidfd: Descriptor
    private let file: Descriptor?
    private let errors: Descriptor
    private let terminalEnd: Descriptor?
    private let lines: Locked<LineReader?>
    private let input: Locked<Descriptor?>
    private let exitCode = Locked<Int32?>(nil)
    private let usedTime = Locked(Duration.zero)

    /// Starts a program on a host, or in the test's own network namespace. `command` names it by a path, or by a name looked up
    /// in PATH, and its arguments follow. `environment` adds to the test's own variables, and a nil value removes one.
    public init(
        _ command: [String], on host: LabHost? = nil, environment: [String: String?] = [:], directory: String? = nil,
        input: Input = .empty, output: Output = .pipe, errors destination: Errors = .file
    ) throws {
        guard let first = command.first else { throw LabError("an empty command") }
        let path = try locate(first)
        var variables = ProcessInfo.processInfo.environment
        for (key, value) in environment { variables[key] = value }
        let allVariables = variables

        var inputEnd: Descriptor?
        var writer: Descriptor?
        switch input {
        case .empty: inputEnd = try Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null")
        case .text(let text): inputEnd = try Descriptor.memory(text)
        case .pipe:
            let ends = try Descriptor.pipe()
            (inputEnd, writer) = (ends.output, ends.input)
        case .terminal, .closed: inputEnd = nil
        }
        let outputEnd: Descriptor?
        var reader: Descriptor?
        var file: Descriptor?
        switch output {
        case .pipe:
            let ends = try Descriptor.pipe()
            (reader, outputEnd) = (ends.output, ends.input)
        case .file:
            file = try Descriptor.memory()
            outputEnd = file
        case .terminal, .wideTerminal:
            let ends = try terminal()
            if case .wideTerminal = output { _ = netwatch_set_terminal_size(ends.master.number, 200, 24) }
            (reader, outputEnd) = (ends.master, ends.slave)
            if case .terminal = input { inputEnd = ends.slave }
        case .null: outputEnd = try Descriptor(open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null")
        case .closed: outputEnd = nil
        }
        let inputNumber = inputEnd?.number
        let errors = try Descriptor.memory()
        let errorsNumber: Int32? =
            switch destination {
            case .file: errors.number
            case .output: outputEnd?.number
            case .closed: nil
            }
        let watchdog = try Watchdog.shared.get()
        let start = {
            let process = try spawn(
                path, command, environment: allVariables, directory: directory, group: .own,
                descriptors: [inputNumber, outputEnd?.number, errorsNumber])
            return (process, try Descriptor(netwatch_pidfd_open(process), "pidfd_open"))
        }
        (processID, pidfd) = if let host { try host.perform(start) } else { try start() }
        try watchdog.take(.processGroup(processID))
        name = command.joined(separator: " ")
        self.file = file
        self.errors = errors
        terminalEnd =
            switch output {
            case .terminal, .wideTerminal: reader
            case .pipe, .file, .null, .closed: nil
            }
        lines = Locked(reader.map(LineReader.init))
        self.input = Locked(writer)
    }

    deinit {
        stop()
    }

    /// The text that the program has written to descriptor 2 so far.
    public var standardError: String { errors.contents() }

    /// The exit code and standard error, for the messages of failed tests.
    public var ending: String {
        "\(name): exit code \(exitCode.withLock { $0 }.map { "\($0)" } ?? "none yet"); stderr: \(standardError)"
    }

    /// The processor time of the program and of the children that it waited for; zero until ``wait(within:)`` has seen its end. Unlike the time of
    /// a clock, it does not grow while other programs use the processors.
    public var processorTime: Duration { usedTime.withLock { $0 } }

    /// The text that the program has written so far to an output of kind ``Output/file``.
    public var output: String { file?.contents() ?? "" }

    /// The next line of output without its newline; nil at the end. - Throws: if no line comes in time.
    public func nextLine(within limit: Duration = .seconds(120)) throws -> String? {
        let deadline = Deadline(in: limit)
        return try lines.withLock { reader in
            guard reader != nil else { throw LabError("\(name): its output is no pipe, or is closed") }
            do {
                return try reader?.next(deadline)
            } catch is NoLine {
                throw LabError("\(name): no line within \(limit); stderr: \(standardError)")
            }
        }
    }

    /// The next line of output, or nil if none comes in time. - Throws: at the end of the output.
    public func lineIfAny(within limit: Duration) throws -> String? {
        let deadline = Deadline(in: limit)
        do {
            let line = try lines.withLock { reader in try reader?.next(deadline) }
            guard let line else { throw LabError("output ended: \(ending)") }
            return line
        } catch is NoLine {
            return nil
        }
    }

    /// Reads up to the first line that matches. - Returns: that line. - Throws: an error with the other lines, if none comes in
    /// time.
    public func nextLine(within limit: Duration = .seconds(120), where fits: (String) throws -> Bool) throws -> String {
        let start = ContinuousClock.now
        var skipped: [String] = []
        do {
            while let line = try nextLine(within: max(.zero, limit - start.duration(to: .now))) {
                if try fits(line) { return line }
                skipped.append(line)
            }
            throw LabError("\(name): output ended; stderr: \(standardError)")
        } catch let error as LabError {
            throw LabError("\(error)\nlines that did not match:\n" + skipped.joined(separator: "\n"))
        }
    }

    /// All remaining lines up to the end of the output.
    public func remainingLines(within limit: Duration = .seconds(120)) throws -> [String] {
        let start = ContinuousClock.now
        var lines: [String] = []
        while let line = try nextLine(within: max(.zero, limit - start.duration(to: .now))) { lines.append(line) }
        return lines
    }

    /// Sets the size of an output of kind ``Output/terminal``, and sends the program SIGWINCH.
    public func resize(columns: Int32, rows: Int32 = 24) throws {
        guard let terminalEnd, netwatch_set_terminal_size(terminalEnd.number, columns, rows) == 0 else {
            throw LabError("\(name): its output is no terminal")
        }
        // The terminal is not the program's controlling terminal, so the kernel does not send the signal.
        try signal(SIGWINCH)
    }

    /// Types text on an output of kind ``Output/terminal``, as a person does: `\u{3}` is Ctrl-C.
    public func typeIn(_ text: String) throws {
        let bytes = Array(text.utf8)
        guard let terminalEnd, Glibc.write(terminalEnd.number, bytes, bytes.count) == bytes.count else {
            throw LabError("\(name): its output is no terminal, or is closed")
        }
    }

    /// Reads up to a text, such as a prompt, which needs no newline. - Throws: if it does not come in time.
    public func read(upTo text: String, within limit: Duration = .seconds(120)) throws {
        let deadline = Deadline(in: limit)
        try lines.withLock { reader in
            guard reader != nil else { throw LabError("\(name): its output is no pipe, or is closed") }
            do {
                guard try reader?.skip(upTo: text, deadline) == true else {
                    throw LabError("\(name): no '\(text)' before the end")
                }
            } catch is NoLine {
                throw LabError("\(name): no '\(text)' within \(limit); stderr: \(standardError)")
            }
        }
    }

    /// Closes the reading end, as `| head -1` does after the first line.
    public func closeOutput() {
        lines.withLock { $0 = nil }
    }

    /// Writes to an input of kind ``Input/pipe``.
    public func write(_ text: String) throws {
        try input.withLock { descriptor in
            guard let descriptor else { throw LabError("\(name): its input is no pipe, or is closed") }
            let bytes = Array(text.utf8)
            guard Glibc.write(descriptor.number, bytes, bytes.count) == bytes.count else { throw LabError(name, errno: errno) }
        }
    }

    /// Closes an input of kind ``Input/pipe``.
    public func closeInput() {
        input.withLock { $0 = nil }
    }

    /// Sends a signal to the program, not to its children. - Throws: if the program's end was already seen.
    public func signal(_ number: Int32) throws {
        try exitCode.withLock { code in
            guard code == nil else { throw LabError("\(name): already ended") }
            guard kill(processID, number) == 0 else { throw LabError("kill", errno: errno) }
        }
    }

    /// Waits for the end of the program, then kills the remaining processes of its group.
    /// - Returns: The exit code, or 128 + the signal that ended it.
    public func wait(within limit: Duration = .seconds(120)) throws -> Int32 {
        if let code = exitCode.withLock({ $0 }) { return code }
        guard try Deadline(in: limit).await(pidfd.number) else {
            throw LabError("\(name): still running after \(limit); stderr: \(standardError)")
        }
        return reap()
    }

    /// Kills the program and its children, if any still run.
    public func stop() {
        guard exitCode.withLock({ $0 == nil }) else { return }
        kill(-processID, SIGKILL)
        _ = reap()
    }

    /// Reaps a process that has ended or was sent SIGKILL. Until then its number cannot belong to another group.
    private func reap() -> Int32 {
        exitCode.withLock { code in
            if let code { return code }
            kill(-processID, SIGKILL)
            var (status, usage) = (Int32(0), rusage())
            while wait4(processID, &status, 0, &usage) < 0 && errno == EINTR {}
            let times = [usage.ru_utime, usage.ru_stime].map { Duration.seconds($0.tv_sec) + .microseconds($0.tv_usec) }
            usedTime.withLock { $0 = times[0] + times[1] }
            if case .success(let watchdog) = Watchdog.shared { watchdog.release(.processGroup(processID)) }
            let result = netwatch_exit_code(status)
            code = result
            return result
        }
    }
}

private func terminal() throws -> (master: Descriptor, slave: Descriptor) {
    var ends: [Int32] = [-1, -1]
    guard netwatch_open_terminal(&ends) == 0 else { throw LabError("terminal", errno: errno) }
    return (try Descriptor(ends[0], "terminal"), try Descriptor(ends[1], "terminal"))
}

/// No line came in time.
private struct NoLine: Error {}

/// A reader that splits the bytes of a descriptor at newlines.
private struct LineReader {
    private let descriptor: Descriptor
    private var pending: [UInt8] = []
    private var ended = false

    init(_ descriptor: Descriptor) {
        self.descriptor = descriptor
    }

    mutating func next(_ deadline: Deadline) throws -> String? {
        while true {
            if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                defer { pending.removeSubrange(...end) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            if ended {
                defer { pending = [] }
                return pending.isEmpty ? nil : String(decoding: pending, as: UTF8.self)
            }
            try fill(deadline)
        }
    }

    /// Drops everything up to the end of a text. Returns whether the text came before the end.
    mutating func skip(upTo text: String, _ deadline: Deadline) throws -> Bool {
        while true {
            if let range = pending.firstRange(of: Array(text.utf8)) {
                pending.removeSubrange(..<range.upperBound)
                return true
            }
            if ended { return false }
            try fill(deadline)
        }
    }

    private mutating func fill(_ deadline: Deadline) throws {
        guard try deadline.await(descriptor.number) else { throw NoLine() }
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = read(descriptor.number, &buffer, buffer.count)
        if count > 0 { pending += buffer[..<count] }
        // A terminal whose other side is closed gives EIO instead of an end.
        if count == 0 || (count < 0 && errno != EINTR) { ended = true }
    }
}
