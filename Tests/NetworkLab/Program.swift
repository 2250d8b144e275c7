import CLinux
import Foundation
import Glibc
import EventLoop

/// A running program. It and its children, one process group, are killed when the last reference goes, when it is reaped, and when the
/// test process ends, even by SIGKILL.
public final class Program: Sendable {
    /// What the program reads from descriptor 0.
    public enum Input: Sendable {
        case empty
        case text(String)
        /// Written piece by piece with ``Program/write(_:)``.
        case pipe
        /// The terminal that ``Output/terminal`` is.
        case terminal
        case closed
    }

    /// What its descriptor 1 is.
    public enum Output: Sendable {
        /// Read line by line while the program runs.
        case pipe
        /// A regular file, read with ``Program/output``: epoll refuses it, as it does a shell's `> FILE`.
        case file
        /// A terminal; lines are read as from a pipe and end with a carriage return.
        case terminal
        case null
        /// No descriptor 1 at all.
        case closed
    }

    /// What its descriptor 2 is.
    public enum Errors: Sendable {
        /// Read with ``Program/standardError``.
        case file
        /// The same as descriptor 1: with ``Output/terminal``, what a person sees.
        case output
        /// No descriptor 2 at all.
        case closed
    }

    /// Also the number of its process group.
    public let processID: Int32
    private let name: String
    private let pidfd: Descriptor
    private let file: Descriptor?
    private let errors: Descriptor
    private let terminalEnd: Descriptor?
    private let lines: Locked<LineReader?>
    private let input: Locked<Descriptor?>
    private let exitCode = Locked<Int32?>(nil)

    /// Starts the program that `command` names, a path or a name looked up in PATH, with the arguments that follow it; on a host, or
    /// in the test's own network namespace. `environment` adds to the test's own, and a nil there takes a variable away.
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
        case .terminal:
            let ends = try terminal()
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
        terminalEnd = if case .terminal = output { reader } else { nil }
        lines = Locked(reader.map(LineReader.init))
        self.input = Locked(writer)
    }

    deinit {
        stop()
    }

    /// What the program has written to descriptor 2 so far.
    public var standardError: String { errors.contents() }

    /// How it ended and what it said, for a test that is not content with that.
    public var ending: String {
        "\(name): exit code \(exitCode.withLock { $0 }.map { "\($0)" } ?? "none yet"); stderr: \(standardError)"
    }

    /// What the program has written so far to an output of kind ``Output/file``.
    public var output: String { file?.contents() ?? "" }

    /// The next line of output without its end; nil when there is no more. Throws when none came in time.
    public func nextLine(within limit: Duration = .seconds(120)) throws -> String? {
        let deadline = Deadline(in: limit)
        return try lines.withLock { reader in
            guard reader != nil else { throw LabError("\(name): its output is no pipe, or is closed") }
            do {
                return try reader?.next(deadline)
            } catch let error as LabError {
                throw LabError("\(name): \(error) within \(limit); stderr: \(standardError)")
            }
        }
    }

    /// Reads on to the first line that fits, and returns it. Throws, with the lines that did not, when none came in time.
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
            throw LabError("\(error)\nlines that did not fit:\n" + skipped.joined(separator: "\n"))
        }
    }

    /// All lines up to the end of the output.
    public func remainingLines(within limit: Duration = .seconds(120)) throws -> [String] {
        let start = ContinuousClock.now
        var rest: [String] = []
        while let line = try nextLine(within: max(.zero, limit - start.duration(to: .now))) { rest.append(line) }
        return rest
    }

    /// Gives an output of kind ``Output/terminal`` a size, and tells the program so.
    public func resize(columns: Int32, rows: Int32 = 24) throws {
        guard let terminalEnd, netwatch_set_terminal_size(terminalEnd.number, columns, rows) == 0 else {
            throw LabError("\(name): its output is no terminal")
        }
        // It is not the program's controlling terminal, from which the kernel would tell it.
        try signal(SIGWINCH)
    }

    /// Closes the reading end, as `| head -1` does when it has enough.
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

    /// Ends an input of kind ``Input/pipe``.
    public func closeInput() {
        input.withLock { $0 = nil }
    }

    /// Sends a signal to the program, not to its children. Throws when the end of the program was already seen.
    public func signal(_ number: Int32) throws {
        try exitCode.withLock { code in
            guard code == nil else { throw LabError("\(name): already ended") }
            guard kill(processID, number) == 0 else { throw LabError("kill", errno: errno) }
        }
    }

    /// Waits for the end of the program, then kills what is left of its process group.
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

    /// Only for a process that has ended or was sent SIGKILL. Until it is reaped its number cannot belong to another group.
    private func reap() -> Int32 {
        exitCode.withLock { code in
            if let code { return code }
            kill(-processID, SIGKILL)
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0 && errno == EINTR {}
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

/// Splits what comes from a descriptor at newlines.
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
            guard try deadline.await(descriptor.number) else { throw LabError("no line") }
            var buffer = [UInt8](repeating: 0, count: 65536)
            let count = read(descriptor.number, &buffer, buffer.count)
            if count > 0 { pending += buffer[..<count] }
            // A terminal whose other side is closed gives EIO instead of an end.
            if count == 0 || (count < 0 && errno != EINTR) { ended = true }
        }
    }
}
