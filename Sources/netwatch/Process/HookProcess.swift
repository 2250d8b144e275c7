import CLinux
import Console
import Glibc
import Reachability

/// One running hook: a shell in its own process group, its input, and its time limit.
final class HookProcess {
    enum Progress: Hashable {
        case runs
        case ended(code: Int32)
        /// By us, because it took too long.
        case killed
        /// By us, because the program ends and it would not.
        case killedAtEnd
    }

    struct StartError: Error {
        let number: Int32
    }

    private let process: pid_t
    /// Becomes readable when the process ends; -1 where the kernel has no such descriptors.
    private let ending: Int32
    private var input: Int32
    private var bytes: [UInt8]
    private var killDeadline: Int64
    /// What is said of the end once the process has been killed.
    private var killing = Progress.killed
    private var isOverdue = false

    /// How often an ending is looked for where the kernel does not tell it.
    private static let lookInterval: Int64 = 50_000_000

    init(command: String, environment: [String: String], input bytes: [UInt8], deadline: Int64) throws(StartError) {
        var ends: [Int32] = [-1, -1]
        guard netwatch_pipe(&ends) == 0 else { throw StartError(number: errno) }
        defer { close(ends[0]) }
        var variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for variable in variables { free(variable) } }
        var child: pid_t = 0
        // The hook's output goes to standard error: standard output is the stream's alone.
        let failure = netwatch_spawn_shell(&child, command, &variables, ends[0], 2)
        guard failure == 0 else {
            close(ends[1])
            throw StartError(number: failure)
        }
        process = child
        // It would outlive a program that a second signal ends.
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
        ending >= 0 ? killDeadline : min(killDeadline, Clock.nanoseconds + Self.lookInterval)
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

    /// Kills and waits: a killed process ends soon.
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
            // ECHILD: whoever started us ignores SIGCHLD, so the kernel keeps no status.
            return result < 0 ? 0 : nil
        }
    }

    /// Writes what fits. A hook may close its input unread.
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
