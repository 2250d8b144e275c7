import ArgumentParser
import Console
import FoundationEssentials
import HTTPSession
import Logging
import Reachability

/// `netwatch beat`: runs a job and reports it to a service, which notices when a report does not come.
struct BeatCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "beat",
        abstract: "Run a job, and report its start and its end to a service.",
        usage: "netwatch beat [<options>] <name> [-- <command> ...]",
        discussion: """
            netwatch beat backup -- /usr/local/bin/backup --all
            netwatch beat --service https://status.example.com --token-file /etc/netwatch/backup.token backup -- ./backup
            netwatch beat --fail --message 'no space left' backup

            With a command, beat reports its start and its exit code, and exits with that code. The command has the standard input of beat. Its \
            output is passed on, and the last 10 KiB of it are the text of the report; --no-output leaves its streams alone, so that a \
            command still sees a terminal. Signals for beat are passed on to the command. Reports never change the exit code and never delay the command: the \
            start is reported while it runs, and at its end beat waits for the service for at most --timeout.

            Without a command, beat reports a success, or with --start, --fail or --code another event.

            The service is that of this machine, or that of --service or of the variable NETWATCH_SERVICE. The token of the heartbeat is the first \
            line of --token-file, which other users must not be able to read, or the variable NETWATCH_BEAT_TOKEN, which the command inherits.

            A report that cannot be delivered waits in --state (default: $XDG_STATE_HOME/netwatch/beat or ~/.local/state/netwatch/beat), \
            at most 100 of a heartbeat and 1 MiB of all. The next beat of the same name and service delivers them first, with the times at which they happened. A \
            report that the service refuses (400, 404, 413) is dropped, with a line on standard error.

            Exit code: the command's own, 128+n if signal n has ended it, 126 or 127 if it cannot be run. Without a command 0: the report is delivered. \
            1: it is not; it waits, or was refused.
            """
    )

    @Argument(help: ArgumentHelp("The heartbeat's name in the configuration of the service.", valueName: "name"))
    var name: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The service: http://HOST:PORT, https://HOST, or the path of its socket (default: NETWATCH_SERVICE, or the service of this machine).",
            valueName: "url"))
    var service: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The file with the heartbeat's token (default: NETWATCH_BEAT_TOKEN).", valueName: "file"))
    var tokenFile: String?

    @Flag(help: "Report that the job has started.")
    var start = false

    @Flag(help: "Report that the job has failed.")
    var fail = false

    @Option(parsing: .unconditional, help: ArgumentHelp("Report this exit code, 0 to 255; 0 is a success.", valueName: "n"))
    var code: Int?

    @Option(parsing: .unconditional, help: ArgumentHelp("The text of the report.", valueName: "text"))
    var message: String?

    @Flag(help: "Read the text of the report from standard input; the service keeps the last 10 KiB.")
    var stdin = false

    @Flag(help: "Do not report the command's output, and leave its streams alone.")
    var noOutput = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The most time for a report after the command has ended.", valueName: "duration"))
    var timeout = "10s"

    @Option(parsing: .unconditional, help: ArgumentHelp("The directory of reports that wait.", valueName: "directory"))
    var state: String?

    @OptionGroup var trust: TrustOptions

    @Flag(name: .shortAndLong, help: "Write nothing about the reports.")
    var quiet = false

    /// The command after `--`, which is split off before parsing, so that its options are its own.
    var command: [String] = []

    enum CodingKeys: CodingKey {
        case name, service, tokenFile, start, fail, code, message, stdin, noOutput, timeout, state, trust, quiet
    }

    func run() throws {
        let environment = ProcessInfo.processInfo.environment
        let limit = try TimeSpan.option("--timeout", timeout) ?? .seconds(10)
        if let state, state.isEmpty { throw Failure.usage("--state ''", "write the path of a directory") }
        if let tokenFile, tokenFile.isEmpty { throw Failure.usage("--token-file ''", "write the path of a file") }
        let plan = try BeatPlan(
            name: name, service: (service, environment["NETWATCH_SERVICE"]),
            options: .init(
                start: start, fail: fail, code: code, message: message, readsInput: stdin, dropsOutput: noOutput),
            command: command)
        let (trust, tokenFile) = (trust, tokenFile)
        let settings = ReportCourier.Settings(
            name: plan.name, service: plan.service, directory: state ?? ReportSpool.directory(environment),
            environment: environment,
            token: { () throws(Failure) in try BeatToken.read(file: tokenFile, environment) },
            session: { () throws(Failure) in try Self.session(trust) })
        let beat: Beat
        do throws(Failure) { beat = try Beat(plan, settings, timeout: limit, isQuiet: quiet) } catch {
            guard case .run(let command, _) = plan.action else { throw error }
            // The command is more important than its report.
            StandardError.note("beat: \(plan.name): not reported: \(error.message)")
            throw Self.replaceThisProgram(by: command)
        }
        let result = beat.run()
        if result != ExitCode.holds { throw SilentExit(code: result) }
    }

    /// Replaces this program. Returns only if that failed.
    private static func replaceThisProgram(by command: [String]) -> Failure {
        RunningCommand.failure(of: command, OpenDescriptors.execute(command))
    }

    private static func session(_ trust: TrustOptions) throws(Failure) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        var probes = TLSProbeSettings()
        try trust.apply(to: &configuration, &probes)
        configuration.additionalHeaderFields[.userAgent] = "netwatch/\(CommandProgram.version)"
        configuration.cookies = .none
        configuration.httpVersion = .http1
        // The program writes its own messages instead of the library's log.
        configuration.logger = Logger(label: "netwatch-beat") { _ in SwiftLogNoOpLogHandler() }
        configuration.name = "netwatch-beat"
        return configuration
    }
}

extension BeatCommand {
    /// Returns the failure of a command line without `--`, with a hint if it has the words of a command.
    static func explaining(_ failure: Failure) -> Failure {
        guard failure.code == ExitCode.usage, failure.message.hasPrefix("beat: "), failure.message.contains("unexpected argument")
        else { return failure }
        let word = failure.message.drop { $0 != "'" }.dropFirst().prefix { $0 != "'" }
        return .usage("beat '\(word)'", "a command follows '--': write -- \(word)")
    }
}
