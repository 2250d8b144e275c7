import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import Records

/// `netwatch probe`: probes targets a number of times, and prints a summary.
struct ProbeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Probe targets a number of times, and print loss, round trips and response times.",
        discussion: """
            netwatch probe db:5432
            netwatch probe -c 20 --interval 200ms 192.0.2.7:22 '[2001:db8::7]:22'

            netwatch probe --live db:5432 192.0.2.7:22

            --live shows a row for each target that is redrawn until Ctrl-C: loss in percent of the packets, the last, shortest, median and \
            95th percentile round trip, jitter, the median response time of targets with TLS or HTTP, and a mark for each of the newest probes.

            A probe of HOST:PORT is a TCP connection that is reset at once; others make a TLS handshake or an HTTP request. Probes of a \
            target start one interval apart, and later if a probe takes longer. Ctrl-C ends the command with the summary of the results so far.

            Exit code 0: each target answered at least one probe. 1: not so. 2: could not be determined. 128+n: ended by signal n.
            """
    )

    @Option(
        name: [.customShort("c"), .long], parsing: .unconditional,
        help: ArgumentHelp("Probes of each target; 0 for endless (default: 5, or endless with --live).", valueName: "n"))
    var count: Int?

    @Flag(help: "Redraw a row for each target on the terminal, until Ctrl-C.")
    var live = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The time between the starts of a target's probes (default: 1s).", valueName: "duration"))
    var interval: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var targets: TargetOptions
    @OptionGroup var time: TimeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let count = count ?? (live ? 0 : 5)
        guard (0...1_000_000).contains(count) else {
            throw Failure.usage("-c \(count)", "must be from 0 (endless) to 1000000")
        }
        if live {
            if output.json { throw Failure.usage("--live --json", "they exclude each other") }
            if output.quiet { throw Failure.usage("--live -q", "they exclude each other") }
            if time.time != nil { throw Failure.usage("--live --time", "the table has no times") }
            guard Terminal.isLive(ProcessInfo.processInfo.environment, on: STDOUT_FILENO) else {
                throw Failure.usage(
                    "--live", "standard output is no terminal that can be redrawn; without --live, each probe is a line")
            }
        }
        let configuration = try network.configuration()
        let endpoints = try targets.endpoints(network)
        guard !endpoints.isEmpty else { throw Failure.usage("probe", "the target is missing; write HOST:PORT") }
        var settings = try targets.applied(
            to: ProbeSettings(
                interval: try TimeSpan.option("--interval", interval) ?? .seconds(1), timeout: try targets.timeout(),
                families: try network.families(), interface: network.interface))
        settings.isScheduledOnly = true
        let writer = try ProbeWriter(
            output, targets: endpoints.map(\.text), count: count, time: try time.text(isJSON: output.json),
            live: live ? settings.interval : nil)
        let signals = try Signals(and: live ? [SIGCONT] : [])
        let collection = ProbeCollection(endpoints: endpoints, count: count, settings: settings, start: Moment.now)
        let run = try ProbeRun(configuration, endpoints.map { ($0, settings) }, collection, writer, signals)
        let ending = run.run()
        let summary = ProbeSummary(moment: Moment.now, targets: run.collection.statistics)
        switch ending {
        case .readerGone: Signals.end(by: SIGPIPE)
        case .outputFailed(let number): throw StandardOutput.failure(number)
        case .signal, .finished, .monitorEnded: try writer.finish(summary)
        }
        if case .signal(let number) = ending { Signals.end(by: number) }
        if ending == .monitorEnded {
            throw Failure(ExitCode.doesNotHold, "probe: the network namespace no longer exists")
        }
        switch summary.verdict {
        case .holds: return
        case .doesNotHold: throw SilentExit(code: ExitCode.doesNotHold)
        case .undetermined: throw SilentExit(code: ExitCode.undetermined)
        }
    }
}
