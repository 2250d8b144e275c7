import CLinux
import Console
import FoundationEssentials
import Glibc
import Pacing
import Reachability

/// Runs a command on each change, one at a time. While one runs, changes wait, and a newer one on the same subject replaces an older.
final class Hooks {
    /// How long a hook may take before it is killed with its process group.
    static let timeLimit = Duration.seconds(30)
    /// How long hooks get between SIGTERM and SIGKILL when the program ends.
    static let grace = Duration.seconds(1)

    private let command: String
    private let timeLimit: Duration
    private let encoder: RecordEncoder
    private let report: (Failure) -> Void
    private var waiting = RecordQueue(limit: 0)
    private var running: HookProcess?
    private var isEnding = false

    init(
        command: String, encoder: RecordEncoder, timeLimit: Duration = Hooks.timeLimit, report: @escaping (Failure) -> Void
    ) {
        self.command = command
        self.encoder = encoder
        self.timeLimit = timeLimit
        self.report = report
    }

    var isIdle: Bool { running == nil && waiting.isEmpty }

    /// When something must be looked at even if no descriptor is ready; nanoseconds.
    var deadline: Int64? { running?.deadline }

    /// A numbered record was written; hooks run on it where it is a change.
    func see(_ record: Record) {
        guard !isEnding, HookEnvironment.isChange(record) else { return }
        // The count says how many changes this hook missed, not how many the stream's reader did.
        var change = record
        change.superseded = 0
        waiting.push(change)
    }

    /// Adds the descriptors of the running hook.
    func watch(_ polling: inout Polling) {
        running?.watch(&polling)
    }

    /// Goes on with the running hook, and starts the next when it has ended.
    func advance(now: Int64) {
        while true {
            if let process = running {
                switch process.advance(now: now) {
                case .runs: return
                case .ended(let code):
                    if code != 0, !isEnding { report(Failure(code, "--exec: '\(command)' \(Self.describe(code))")) }
                case .killed:
                    report(Failure(1, "--exec: '\(command)' took longer than \(TimeSpan.rough(timeLimit)) and was killed"))
                case .killedAtEnd:
                    report(Failure(1, "--exec: '\(command)' still ran at the end, did not heed SIGTERM and was killed"))
                }
                running = nil
            }
            guard !isEnding, let record = waiting.take() else { return }
            start(record, now: now)
        }
    }

    private func start(_ record: Record, now: Int64) {
        var environment = ProcessInfo.processInfo.environment
        for variable in HookEnvironment.variables(for: record) { environment[variable.name] = variable.value }
        let input = encoder.encode(record) + [UInt8(ascii: "\n")]
        do {
            running = try HookProcess(
                command: command, environment: environment, input: input, deadline: now + timeLimit.saturatingNanoseconds
            )
        } catch {
            report(Failure(ExitCode.system, "--exec: cannot start '\(command)': \(errorText(error.number))"))
        }
    }

    /// Starts no more hooks and asks the running one to end; it is killed after the grace.
    func end(now: Int64) {
        guard !isEnding else { return }
        isEnding = true
        while waiting.take() != nil {}
        running?.terminate(killAt: now + Self.grace.saturatingNanoseconds)
    }

    /// Kills what still runs.
    func kill() {
        running?.kill()
        running = nil
    }

    private static func describe(_ code: Int32) -> String {
        code > 128 && code <= 128 + 64 ? "ended by signal \(code - 128)" : "failed with exit code \(code)"
    }
}
