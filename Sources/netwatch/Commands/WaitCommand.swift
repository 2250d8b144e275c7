import ArgumentParser
import Console
import Records
import FoundationEssentials
import Glibc
import Reachability

/// `netwatch wait`: waits until targets are reachable.
struct WaitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Wait until the targets are up; without targets, until the path is satisfied.",
        usage: "netwatch wait [<options>] [<target> ...] [-- <command> ...]",
        discussion: """
            netwatch wait --timeout 30s
            netwatch wait --any --stable 5s db1:5432 db2:5432 -- ./start

            Targets are probed every 250 ms at first, then less often, at last once a second, and at once when the path or a neighbor changes. \
            With --interval they are probed at that interval. A terminal shows what is waited for; -v writes it to a pipe too.

            Exit code 0: the condition holds. 124: it did not hold within --timeout. With a command: the command's own, 126 or 127.
            """
    )

    @Flag(help: "One of the targets is enough.")
    var any = false

    @Flag(help: "All targets must be up (the default).")
    var all = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The condition must hold for this time without a break.", valueName: "duration"))
    var stable: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Give up after this time (default: never).", valueName: "duration"))
    var timeout: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var targets: TargetOptions
    @OptionGroup var pacing: PacingOptions
    @OptionGroup var failure: FailureOptions
    @OptionGroup var output: OutputOptions

    /// The command after `--`, which then replaces netwatch. It is split off before parsing: the parser would take it for
    /// targets.
    var command: [String] = []

    enum CodingKeys: CodingKey {
        case any, all, stable, timeout, network, targets, pacing, failure, output
    }

    func run() throws {
        if any, all { throw Failure.usage("--any --all", "they exclude each other") }
        let configuration = try network.configuration()
        let endpoints = try targets.endpoints(network)
        let settings = try pacing.eagerSettings(targets, network, count: endpoints.count)
        let limit = try TimeSpan.option("--timeout", timeout)
        let start = Moment.now
        var condition = WaitCondition(
            endpoints: endpoints, needsAll: !any, rule: try failure.rule(),
            stable: try TimeSpan.option("--stable", stable) ?? .zero,
            timeLimit: limit.map { start.advanced(by: $0) }
        )
        let report = WaitReport(output, start: start, limit: limit)
        let ignoredSignals = Signals.resetIgnored()
        let watcher = try Watcher(configuration, targets: endpoints.map { ($0, settings) })
        let isDone = watcher.run(&condition, progress: report?.update)
        watcher.session.stop()
        report?.end(condition)
        guard isDone else {
            throw Failure(ExitCode.doesNotHold, "wait: the network namespace is gone; \(condition.reason)")
        }
        guard condition.isFulfilled(at: Moment.now) else {
            throw Failure(ExitCode.timedOut, "wait: timed out after \(timeout ?? ""): \(condition.reason)")
        }
        guard let name = command.first else { return }
        Signals.ignore(ignoredSignals)
        let number = OpenDescriptors.execute(command)
        let code = number == ENOENT || number == ENOTDIR ? ExitCode.commandNotFound : ExitCode.cannotExecute
        throw Failure(code, "\(name): cannot run: \(errorText(number))")
    }
}

extension WaitCommand {
    /// Returns the failure of a command line without `--`, with a hint if the fault is in the words of a command.
    static func explaining(_ failure: Failure, _ arguments: [String]) -> Failure {
        guard failure.code == ExitCode.usage else { return failure }
        var hasTarget = false
        for (index, word) in arguments.enumerated().dropFirst() where !word.hasPrefix("-") {
            if (try? Endpoint(word)) != nil {
                hasTarget = true
                continue
            }
            // A path is no host. Any other word may be one whose port was forgotten, unless a target comes before it.
            let isPath = word.contains("/") && !word.contains("://")
            guard isPath || hasTarget else { continue }
            let isRefused = failure.message.hasPrefix("target '\(word)': ")
            // The word may be the value of an option, and the unknown option then has another reason.
            let isBeforeOption = failure.message.hasPrefix("wait: unknown option") && !arguments[index - 1].hasPrefix("-")
            guard isRefused || isBeforeOption else { continue }
            let hint = "a command follows '--': write -- \(word)"
            guard isRefused, !isPath else { return .usage("wait '\(word)'", "it is no target; \(hint)") }
            return Failure(failure.code, "\(failure.message); \(hint)")
        }
        return failure
    }
}

/// The lines about the progress of `wait` on standard error. They are written at once: nobody reads them later.
private final class WaitReport {
    private var progress: WaitProgress
    private let isLive: Bool

    /// Creates the report; `nil` if there is none: with `-q`, and for a pipe without `-v`.
    init?(_ output: OutputOptions, start: Moment, limit: Duration?) {
        let environment = ProcessInfo.processInfo.environment
        isLive = Terminal.isLive(environment)
        guard !output.quiet, isLive || output.verbose else { return nil }
        let style = TextStyle(choice: output.color, isTerminal: isLive, environment: environment)
        progress = WaitProgress(isLive ? .live(style) : .lines, start: start, limit: limit)
    }

    func update(_ condition: WaitCondition, at now: Moment) -> Moment {
        // A job in the background of a shell does not draw over the work in the foreground.
        if isLive, Terminal.isInBackground() { return now.advanced(by: .seconds(1)) }
        progress.columns = TerminalSize.columns(of: STDERR_FILENO)
        let (text, next) = progress.text(condition, at: now)
        write(text)
        return next
    }

    func end(_ condition: WaitCondition) { write(progress.end(condition, at: Moment.now)) }

    private func write(_ text: String) {
        // A terminal that cannot be redrawn has lines too.
        if isLive {
            StandardError.write(text)
        } else {
            text.split(separator: "\n").forEach { StandardError.write(line: String($0)) }
        }
    }
}
