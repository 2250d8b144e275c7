import CLinux
import Console
import FoundationEssentials
import Glibc
import Pacing
import Reachability

/// The hooks of `--exec`: it runs a command on each change, one at a time. While one runs, changes are queued, and a newer
/// change replaces an older one on the same subject.
final class Hooks {
    /// The time after which a hook is killed with its process group.
    static let timeLimit = Duration.seconds(30)
    /// The time between SIGTERM and SIGKILL when the program ends.
    static let grace = Duration.seconds(1)

    private let command: String
    /// The command in messages.
    private var shownCommand: String { UserInformation.withoutPasswords(inWordsOf: command) }
    private let timeLimit: Duration
    private let encoder: RecordEncoder
    private let report: (Failure) -> Void
    private var waiting = RecordQueue(limit: 0)
    /// The last state of each target.
    private var known: [TargetID: ServerUpdate] = [:]
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

    /// The time of the next check if no descriptor becomes ready, in nanoseconds.
    var deadline: Int64? { running?.deadline }

    /// Handles a numbered record: a hook runs if it is a change.
    func receive(_ record: Record) {
        guard !isEnding, !isOfPendingOnly(record), HookEnvironment.isChange(record) else { return }
        // For a hook, the count is the number of changes that it missed, not the number of records that the stream's reader
        // missed.
        var change = record
        change.superseded = 0
        waiting.push(change)
    }

    /// Returns whether a record reports nothing but a failure that does not change the status yet, or its end: no hook runs for it.
    private func isOfPendingOnly(_ record: Record) -> Bool {
        guard case .server(let id, let update) = record.event else { return false }
        let former = known.updateValue(update, forKey: id)
        return former.map { $0.pending?.name != update.pending?.name && $0.isSame(butPending: update) } ?? false
    }

    /// Adds the descriptors of the running hook.
    func watch(_ polling: inout Polling) {
        running?.watch(&polling)
    }

    /// Advances the running hook, and starts the next one when it has ended.
    func advance(now: Int64) {
        while true {
            if let process = running {
                switch process.advance(now: now) {
                case .runs: return
                case .ended(let code):
                    if code != 0, !isEnding { report(Failure(code, "--exec: '\(shownCommand)' \(Self.describe(code))")) }
                case .killed:
                    report(Failure(1, "--exec: '\(shownCommand)' took longer than \(TimeSpan.rough(timeLimit)) and was killed"))
                case .killedAtEnd:
                    report(Failure(1, "--exec: '\(shownCommand)' still ran at the end, ignored SIGTERM and was killed"))
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
            report(Failure(ExitCode.system, "--exec: cannot start '\(shownCommand)': \(errorText(error.number))"))
        }
    }

    /// Ends the hooks: no new one starts, and the running one receives SIGTERM. It is killed after ``grace``.
    func end(now: Int64) {
        guard !isEnding else { return }
        isEnding = true
        while waiting.take() != nil {}
        running?.terminate(killAt: now + Self.grace.saturatingNanoseconds)
    }

    /// Kills the running hook.
    func kill() {
        running?.kill()
        running = nil
    }

    private static func describe(_ code: Int32) -> String {
        code > 128 && code <= 128 + 64 ? "ended by signal \(code - 128)" : "failed with exit code \(code)"
    }
}

extension ServerUpdate {
    /// Returns whether an update has the same status, cause, address, interface and flags.
    fileprivate func isSame(butPending other: ServerUpdate) -> Bool {
        statusName == other.statusName && cause?.name == other.cause?.name && address == other.address
            && interface?.name == other.interface?.name
            && isFlapping == other.isFlapping && isPaused == other.isPaused
    }
}
