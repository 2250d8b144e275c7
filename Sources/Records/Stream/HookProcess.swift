import CLinux
import Console
import EventLoop
import Glibc
import Reachability

/// One running hook: a shell in its own process group, with its input and its time limit.
final class HookProcess {
    enum Progress: Hashable {
        case runs
        case ended(code: Int32)
        /// The program killed it because it exceeded its time limit.
        case killed
        /// The program killed it because it did not end with the program.
        case killedAtEnd
    }

    struct StartError: Error {
        let number: Int32
    }

    private let process: pid_t
    /// A descriptor that becomes readable when the process ends; -1 if the kernel does not support pidfd_open(2).
    private let ending: Int32
    private var input: Int32
    private var bytes: [UInt8]
    private var killDeadline: Int64
    /// The result to return after the process has been killed.
    private var killing = Progress.killed
    private var isOverdue = false

    /// The interval at which the process is checked if there is no pidfd, in nanoseconds.
    private static let checkInterval: Int64 = 50_000_000

    init(command: String, environment: [String: String], input bytes: [UInt8], deadline: Int64) throws(StartError) {
        var ends: [Int32] = [-1, -1]
        guard netwatch_pipe(&ends) == 0 else { throw StartError(number: errno) }
        defer { close(ends[0]) }
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for variable in variables { free(variable) } }
        var child: pid_t = 0
        // The hook's output goes to standard error: standard output carries only the stream.
        let failure = netwatch_spawn_shell(&child, command, &variables, ends[0], 2)
        guard failure == 0 else {
            close(ends[1])
            throw StartError(number: failure)
        }
        process = child
        // Without this, the hook would outlive a program that a second signal ends.
        Signals.killAtEnd(processGroup: child)
        ending = netwatch_pidfd_open(child)
        input = ends[1]
        _ = fcntl(input, F_SETFL, O_NONBLOCK)
        self.bytes = bytes
        killDeadline = deadline
    }

    deinit {
        if ending >= 0 { close(ending) }
        closeInput()
    }

    var deadline: Int64 {
        ending >= 0 ? killDeadline : min(killDeadline, MonotonicClock.now() + Self.checkInterval)
    }

    func watch(_ polling: inout Polling) {
        if ending >= 0 { _ = polling.add(ending, Int32(POLLIN)) }
        if input >= 0 { _ = polling.add(input, Int32(POLLOUT)) }
    }

    func advance(now: Int64) -> Progress {
        feed()
        if let code = reap(options: WNOHANG) { return isOverdue ? killing : .ended(code: code) }
        if now >= killDeadline {
            isOverdue = true
            killpg(process, SIGKILL)
            killDeadline = .max
        }
        return .runs
    }

    func terminate(killAt deadline: Int64) {
        killpg(process, SIGTERM)
        guard deadline < killDeadline else { return }
        killDeadline = deadline
        killing = .killedAtEnd
    }

    /// Kills the process group and waits for the end of the process, which is near.
    func kill() {
        killpg(process, SIGKILL)
        _ = reap(options: 0)
    }

    private func reap(options: Int32) -> Int32? {
        var status: Int32 = 0
        while true {
            let result = waitpid(process, &status, options)
            if result == process || (result < 0 && errno != EINTR) { Signals.killAtEnd(processGroup: nil) }
            if result == process { return netwatch_exit_code(status) }
            if result < 0, errno == EINTR { continue }
            // ECHILD: the program was started with SIGCHLD ignored, so the kernel keeps no status.
            return result < 0 ? 0 : nil
        }
    }

    /// Writes as much as fits. A hook may close its input without reading it.
    private func feed() {
        while input >= 0, !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes.removeFirst(count)
            } else if errno != EINTR {
                if errno == EAGAIN { return }
                break
            }
        }
        closeInput()
    }

    private func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }
}
