import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import HTTPSession
import HTTPTypes
import Logging
import Reachability

/// The options that `get` and `put` share, and the settings that they define.
struct TransferOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The maximum bytes per second of all transfers together: 500k, 2M, 1G are powers of 1024, as in curl.",
            valueName: "bytes"))
    var limitRate: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Give up after this time (default: never).", valueName: "duration"))
    var timeout: String?

    @OptionGroup var server: ServerOptions

    @OptionGroup var network: NetworkOptions

    @Flag(help: "Write JSON: one record of type transfer per line on standard output, instead of the progress.")
    var json = false

    @Option(help: ArgumentHelp("When to use colors; auto respects NO_COLOR and TERM=dumb", valueName: "when"))
    var color = TextStyle.ColorChoice.auto

    @Flag(name: .shortAndLong, help: "Write only errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Write more: one line for each attempt, response and redirect.")
    var verbose = false

    /// The settings that the options define.
    struct Setup {
        var monitoring: MonitorConfiguration
        var session: SessionConfiguration
        var transfers: Transfers.Settings
    }

    /// Converts the options to settings for transfers of `urls`. `start`: the start of the time that `--timeout` limits.
    func setup(_ command: String, _ urls: [URL], parallel: Int = 1, since start: Moment) throws(Failure) -> Setup {
        let timeLimit = try TimeSpan.option("--timeout", timeout)
        let monitoring = try network.configuration()
        var configuration = SessionConfiguration()
        // A user who types http accepts it. No redirect leads from https to http.
        configuration.insecureHTTP = urls.contains { $0.scheme?.lowercased() == "http" } ? .allowed : .refused
        configuration.followsInsecureRedirects = false
        configuration.namespace = monitoring.namespace
        configuration.interface = network.interface
        configuration.addressFamily =
            switch monitoring.families {
            case [.v4]: .ipv4
            case [.v6]: .ipv6
            default: .any
            }
        if let limitRate {
            guard let rate = ByteCount.parse(limitRate) else {
                throw .usage("--limit-rate \(limitRate)", "write a whole number of bytes a second, as in 500000, 500k or 2M")
            }
            // Each has its share, also when fewer are left: the sum never exceeds the limit.
            let share = max(1, rate / Int64(max(1, min(parallel, urls.count))))
            configuration.maximumReceiveRate = share
            configuration.maximumSendRate = share
        }
        configuration.retryPolicy = RetryPolicy(
            maximumRetries: nil, maximumRetryAfter: Transfers.forever, statusCodes: TransferProblem.temporaryStatuses)
        configuration.maximumConnectionsPerHost = max(6, parallel)
        configuration.additionalHeaderFields[.userAgent] = "netwatch/\(CommandProgram.version)"
        var settings = Transfers.Settings(parallel: parallel)
        try server.apply(to: &configuration, &settings.tls)
        if let problem = configuration.proxy.problem(for: urls) {
            throw .usage("the proxy of the environment (http_proxy, https_proxy, all_proxy)", problem)
        }
        // The program writes its own messages instead of the library's log.
        configuration.logger = Logger(label: "netwatch-\(command)") { _ in SwiftLogNoOpLogHandler() }
        configuration.name = "netwatch-\(command)"
        settings.deadline = timeLimit.map { start.advanced(by: $0) }
        settings.timeoutText = timeout ?? ""
        settings.handlers = try server.handlers(for: urls)
        return Setup(monitoring: monitoring, session: configuration, transfers: settings)
    }

    /// Runs the transfers, and ends the program with their result.
    func run(_ work: any TransferWork, _ setup: Setup) throws {
        let report = try Report(format)
        switch try Transfers(work, setup.transfers, report).run(setup.session, setup.monitoring) {
        case .finished(let code): if code != ExitCode.holds { throw SilentExit(code: code) }
        case .signal(let number): Signals.end(by: number)
        case .readerGone: Signals.end(by: SIGPIPE)
        case .outputFailed(let number): throw StandardOutput.failure(number)
        }
    }

    private var format: Report.Format {
        if json { return .records }
        if quiet { return .quiet }
        let environment = ProcessInfo.processInfo.environment
        let isLive = !verbose && Terminal.isLive(environment)
        return isLive
            ? .live(TextStyle(choice: color, isTerminal: true, environment: environment)) : .lines(isVerbose: verbose)
    }
}
