import ArgumentParser
import Console
import Foundation
import HTTPSession
import HTTPTypes
import Logging
import Reachability

/// `netwatch get`: downloads that go on when network, server and process are back.
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Download files, through outages and restarts.",
        discussion: """
            netwatch get https://example.com/big.iso
            netwatch get -d images --limit-rate 2M https://example.com/a.iso https://example.com/b.iso
            netwatch get -o big.iso --sha256 9f86d081… https://mirror.example.com/big.iso

            What has come lies beside the destination as NAME.netwatch-part until it is whole. However a download ends, the same \
            command continues it: where the server's version is the same one, or --sha256 says what the whole is. A file that is \
            there already is replaced only when the new one is whole.

            It tries until --timeout. What trying cannot mend ends it: statuses 400 to 499 except 408 and 429, an untrusted \
            certificate, an endless or refused redirect, a wrong digest, a file that cannot be written.

            Exit code 0: all files are whole. 1: one is not. 73, 74: with one URL, its file cannot be made or written. \
            128+n: ended by signal n; what has come is kept.
            """
    )

    @Argument(help: ArgumentHelp("http:// or https:// addresses.", valueName: "url"))
    var urls: [String] = []

    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("The file to be (one URL); otherwise it is named as the URL's path ends.", valueName: "file"))
    var output: String?

    @Option(
        name: [.customShort("d"), .customLong("directory")],
        help: ArgumentHelp("Where the files go; made where it is missing (default: here).", valueName: "directory"))
    var directory: String?

    @Option(help: ArgumentHelp("What the file's SHA-256 has to be, in hexadecimal digits (one URL).", valueName: "hex"))
    var sha256: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Bytes a second that each download may receive: 500k, 2M, 1G are powers of 1024, as for curl.", valueName: "bytes"))
    var limitRate: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many URLs are downloaded at a time, 1 to 64", valueName: "n"))
    var parallel = 3

    @Flag(name: .customLong("no-continue"), help: "Begin anew, whatever is there of an earlier download.")
    var beginsAnew = false

    @Option(parsing: .unconditional, help: ArgumentHelp("Give up after this long (default: never).", valueName: "duration"))
    var timeout: String?

    @OptionGroup var network: Console.NetworkOptions

    @Flag(help: "JSON: a record of type transfer a line on standard output, instead of the progress.")
    var json = false

    @Option(help: ArgumentHelp("Colours; auto heeds NO_COLOR and TERM=dumb", valueName: "when"))
    var color = TextStyle.ColorChoice.auto

    @Flag(name: .shortAndLong, help: "Write nothing but errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Write more: each attempt, answer and redirect, in lines.")
    var verbose = false

    func run() throws {
        let timeLimit = try TimeSpan.option("--timeout", timeout)
        let start = Clock.now
        guard (1...64).contains(parallel) else { throw Failure.usage("--parallel \(parallel)", "must be from 1 to 64") }
        var plan = try GetPlan(urls: urls, output: output, directory: directory, sha256: sha256)
        plan.beginsAnew = beginsAnew
        let monitoring = try network.configuration()
        let configuration = try sessionConfiguration(monitoring, plan)
        try Destination.prepare(&plan)
        let report = try Report(format)
        var settings = Downloads.Settings(parallel: parallel)
        settings.deadline = timeLimit.map { start.advanced(by: $0) }
        settings.timeoutText = timeout ?? ""
        switch try Downloads(plan, settings, report).run(configuration, monitoring) {
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

    private func sessionConfiguration(
        _ monitoring: MonitorConfiguration, _ plan: GetPlan
    ) throws(Failure) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        // Who types http means it; from https nothing leads there.
        configuration.insecureHTTP = plan.items.contains { $0.url.scheme?.lowercased() == "http" } ? .allowed : .refused
        configuration.followsInsecureRedirects = false
        configuration.networkNamespace = monitoring.namespace
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
            configuration.maximumReceiveRate = rate
        }
        configuration.retryPolicy = RetryPolicy(maximumRetries: nil, statusCodes: Trouble.temporaryStatuses)
        configuration.maximumConnectionsPerHost = max(6, parallel)
        configuration.additionalHeaderFields[.userAgent] = "netwatch/\(CommandProgram.version)"
        configuration.postsNotifications = false
        // What there is to say is said in our own words.
        configuration.logger = Logger(label: "netwatch-get") { _ in SwiftLogNoOpLogHandler() }
        configuration.name = "netwatch-get"
        return configuration
    }
}
