import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import EventLoop
import Records

/// The options and the stream of records that `watch` and `record` share.
struct StreamOptions: ParsableArguments {
    @Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp("Stop after this time, with exit code 0.", valueName: "duration"))
    var duration: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Stop after this many records, not counting the first (hello), with exit code 0.", valueName: "n"))
    var count: Int?

    @Option(
        name: .customLong("exec"),
        help: ArgumentHelp(
            "Run this command with 'sh -c' on each change; the record is on its standard input, NETWATCH_* in its environment.",
            discussion: "One runs at a time; a newer change replaces a waiting one; killed after 30s.", valueName: "command"))
    var hook: String?

    @Flag(help: "Probe all addresses of a name, and show each of them with its status.")
    var eachAddress = false

    @OptionGroup var network: NetworkOptions
    @OptionGroup var canary: CanaryOptions
    @OptionGroup var pacing: PacingOptions
    @OptionGroup var incidents: IncidentOptions
    @OptionGroup var time: TimeOptions
    @OptionGroup var output: OutputOptions

    /// Writes the stream of a running service until it ends, and then ends the program. An empty text stands for the usual
    /// socket.
    func run(_ targets: TargetOptions, connectedTo socket: String) throws {
        if let option = optionsOfMonitor(targets).first(where: \.isGiven)?.name {
            throw Failure.usage("--connect", "\(option) has no effect on the monitor of the service")
        }
        let settings = try streamSettings([], isQuiet: output.quiet)
        let names = try targets.names
        let stream = ServiceStream(
            socket: socket.isEmpty ? nil : socket, targets: names, format: settings.format, isQuiet: settings.isQuiet,
            count: settings.count, duration: settings.duration, time: settings.time)
        let ending = try stream.run(try StandardOutput(), try Signals())
        try ending.end(monitorEnded: Failure(ExitCode.unavailable, "the service has ended"))
    }

    /// The options of a monitor, which the stream of a service does not have.
    private func optionsOfMonitor(_ targets: TargetOptions) -> [(name: String, isGiven: Bool)] {
        MonitorOptions.list(network, targets, canary) + [
            ("--exec", hook != nil), ("--each-address", eachAddress), ("--interval", pacing.interval != nil),
            ("--fail-after", pacing.failAfter != nil),
            ("--recover-after", pacing.recoverAfter != nil), ("--open-after", incidents.openAfter != nil),
            ("--close-after", incidents.closeAfter != nil), ("--response-limit", pacing.responseLimit != nil),
            ("-v", output.verbose),
        ]
    }

    /// Runs the stream until it ends, and then ends the program.
    func run(_ targets: TargetOptions, recordingTo path: String? = nil) throws {
        let configuration = try network.configuration()
        var settings = try incidents.applied(to: pacing.settings(targets, network))
        if eachAddress { settings.addresses = .each }
        // The canary is the last target of the stream.
        let watched = try targets.endpoints(network).map { ($0, settings) } + [canary.target(settings, network)].compactMap { $0 }
        let isQuiet = output.quiet || path.map(RecordingWriter.isStandardOutput) ?? false
        let lostRecording = LostRecording(path: path ?? "")
        let stream = try RecordStream(
            try streamSettings(watched.map(\.0), isQuiet: isQuiet), output: isQuiet ? nil : try StandardOutput(),
            signals: try Signals(), report: StandardError.report
        )
        let includesProbes = output.verbose
        let ending = try stream.run { sink in
            try .monitor(
                configuration, targets: watched, includesProbes: includesProbes, recordingTo: path,
                recordingFailed: lostRecording.report, sink: sink)
        }
        let namespace = network.netns.map { "network namespace '\($0)'" } ?? "network namespace"
        try ending.end(
            monitorEnded: Failure(ExitCode.doesNotHold, "\(namespace): it no longer exists, so there is nothing to watch"))
        if lostRecording.isLost { throw SilentExit(code: ExitCode.inputOutput) }
    }

    private func streamSettings(_ endpoints: [Endpoint], isQuiet: Bool) throws(Failure) -> RecordStream.Settings {
        var settings = RecordStream.Settings()
        settings.targets = endpoints
        settings.format = output.streamFormat
        settings.isQuiet = isQuiet
        settings.isVerbose = output.verbose
        settings.time = try time.text(isJSON: output.json)
        settings.duration = try TimeSpan.option("--for", duration)
        if let count {
            guard count > 0 else { throw .usage("--count \(count)", "must be at least 1") }
            settings.count = count
        }
        if let hook {
            guard hook.contains(where: { !$0.isWhitespace }) else { throw .usage("--exec", "the command is empty") }
            settings.hookCommand = hook
        }
        return settings
    }
}

/// The state of a recording that can no longer be written. The failure is reported at once; watching continues, and the exit code
/// reports it at the end.
private final class LostRecording: Sendable {
    private let path: String
    private let lost = Locked(false)

    init(path: String) {
        self.path = path
    }

    var isLost: Bool { lost.withLock { $0 } }

    @Sendable func report(_ number: Int32) {
        lost.withLock { $0 = true }
        let why = number == ENOBUFS ? "the disk is too slow" : errorText(number)
        StandardError.report(Failure(ExitCode.inputOutput, "\(path): the recording ends early: \(why)"))
    }
}
