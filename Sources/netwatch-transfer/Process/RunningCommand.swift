import CLinux
import Console
import EventLoop
import Glibc
import Reachability

/// The command of `netwatch beat`, whose output is passed on while its end is kept.
final class RunningCommand {
    /// How the command has ended.
    enum Ending: Hashable {
        case exited(code: Int32)
        case killed(signal: Int32)

        /// The exit code as shells give it.
        var code: Int32 {
            switch self {
            case .exited(let code): code
            case .killed(let signal): 128 + signal
            }
        }
    }

    /// One stream of the command's output: a pipe, and the descriptor of this program to which its bytes are passed on.
    private final class Channel {
        /// The number of bytes that may wait for the reader.
        private static let leeway = 1 << 16

        /// The reading end of the pipe; -1 when it is closed.
        private var pipe: Int32
        private var output: StandardOutput?
        /// The failure of a write, until it is reported.
        private var failure: Int32?

        init(_ pipe: Int32, to descriptor: Int32) {
            self.pipe = pipe
            // Without an output, as with '1>&-', the bytes are only kept.
            output = try? StandardOutput(descriptor: descriptor)
        }

        deinit { closePipe() }

        var isDrained: Bool { (output?.pendingCount ?? 0) == 0 }

        func watch(_ polling: inout Polling) -> (reading: Int?, writing: Int?) {
            // A slow reader slows the command, as without this program.
            let reads = pipe >= 0 && (output?.pendingCount ?? 0) < Self.leeway
            return (reads ? polling.add(pipe, Int32(POLLIN)) : nil, isDrained ? nil : output?.watch(&polling))
        }

        func advance(_ polling: Polling, _ places: (reading: Int?, writing: Int?), _ tail: inout OutputTail) {
            if polling.isReady(places.writing) { write() }
            if polling.isReady(places.reading) { _ = read(&tail) }
        }

        /// Reads one chunk. - Returns: Whether there may be more.
        private func read(_ tail: inout OutputTail) -> Bool {
            guard pipe >= 0 else { return false }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = Glibc.read(pipe, &buffer, buffer.count)
            if count > 0 {
                tail.append(buffer[..<count])
                output?.append(piece: Array(buffer[..<count]))
                return true
            }
            if count == 0 || (errno != EAGAIN && errno != EINTR) { closePipe() }
            return false
        }

        /// Reads what the command has left in the pipe. Processes that it has left behind may write on.
        func readRemaining(_ tail: inout OutputTail) {
            for _ in 0..<32 { guard read(&tail) else { return } }
        }

        private func write() {
            switch output?.write() {
            case .wrote?, nil: break
            case .readerGone?:
                // The command receives SIGPIPE at its next write, as without this program.
                output = nil
                closePipe()
            case .failed(let number)?:
                output = nil
                failure = number
            }
        }

        /// The error of a write that was not reported yet. The command goes on, and the end of its output is still kept.
        func takeFailure() -> Int32? {
            defer { failure = nil }
            return failure
        }

        /// Ends the reading. Processes that write on receive SIGPIPE.
        func closePipe() {
            if pipe >= 0 { close(pipe) }
            pipe = -1
        }
    }

    let process: Int32
    private var channels: [Channel] = []
    private var tail = OutputTail()
    private(set) var ending: Ending?

    /// Starts a command. With `keepsOutput`, its output passes through this program; if not, it has the descriptors of this program. `blocked` are the
    /// signals that were blocked when this program was started.
    ///
    /// - Throws: ``Failure`` with code 127 if there is no such command, and with 126 if it cannot be executed.
    init(_ command: [String], keepsOutput: Bool, blocking blocked: Signals.Mask) throws(Failure) {
        var pipes: [(reading: Int32, writing: Int32)] = []
        defer { for pipe in pipes { close(pipe.writing) } }
        // If both are the same file, one pipe keeps the order of what is written to them.
        let targets: [Int32] = !keepsOutput ? [] : Self.isSameFile(1, 2) ? [1] : [1, 2]
        for target in targets {
            var ends: [Int32] = [-1, -1]
            // Without descriptors for a pipe, the command is more important than the end of its output.
            guard netwatch_pipe(&ends) == 0 else { break }
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            pipes.append((ends[0], ends[1]))
            channels.append(Channel(ends[0], to: target))
        }
        let hasAll = pipes.count == targets.count
        let (process, number) = OpenDescriptors.start(
            command, output: hasAll ? pipes.first?.writing : nil, errors: hasAll ? pipes.last?.writing : nil, blocking: blocked)
        guard number == 0 else { throw Self.failure(of: command, number) }
        self.process = process
        if !hasAll { channels = [] }
    }

    /// The failure of a command that cannot be run, with the code that shells have for it.
    static func failure(of command: [String], _ number: Int32) -> Failure {
        let code = number == ENOENT || number == ENOTDIR ? ExitCode.commandNotFound : ExitCode.cannotExecute
        return Failure(code, "\(command[0]): cannot run: \(errorText(number))")
    }

    private static func isSameFile(_ one: Int32, _ other: Int32) -> Bool {
        var (first, second) = (stat(), stat())
        return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev
            && first.st_ino == second.st_ino
    }

    // MARK: The turn

    /// The indexes of the channels among the polled descriptors.
    typealias Places = [(reading: Int?, writing: Int?)]

    func watch(_ polling: inout Polling) -> Places { channels.map { $0.watch(&polling) } }

    /// Passes output on. - Returns: The errors of the program's own output that have occurred.
    func advance(_ polling: Polling, _ places: Places) -> [Int32] {
        for (channel, places) in zip(channels, places) { channel.advance(polling, places, &tail) }
        return channels.compactMap { $0.takeFailure() }
    }

    /// Ends the reading of the output, which processes that the command has left behind may still write.
    func stopReading() { for channel in channels { channel.closePipe() } }

    /// Whether all output that was read is passed on.
    var isDrained: Bool { channels.allSatisfy(\.isDrained) }

    /// Returns whether the command has ended. Call it after SIGCHLD.
    func reap() -> Bool {
        guard ending == nil else { return true }
        var status: Int32 = 0
        let result = waitpid(process, &status, WNOHANG)
        guard result == process || (result < 0 && errno != EINTR) else { return false }
        // The low seven bits are the signal (wait(2)).
        let signal = status & 0x7F
        ending = signal == 0 || result < 0 ? .exited(code: result < 0 ? 0 : status >> 8 & 0xFF) : .killed(signal: signal)
        for channel in channels { channel.readRemaining(&tail) }
        return true
    }

    /// Whether a signal has ended the command.
    var isKilled: Bool { if case .killed? = ending { true } else { false } }

    /// The end of the output so far, with a line about the signal that has ended the command.
    var output: String {
        guard case .killed(let signal)? = ending else { return tail.text() }
        return tail.text(note: "netwatch: the command was ended by signal \(signal), \(SignalName.text(signal))")
    }

    /// Passes a signal on. The process cannot be another one yet: it is not reaped.
    func pass(on signal: Int32) { if ending == nil { kill(process, signal) } }
}
