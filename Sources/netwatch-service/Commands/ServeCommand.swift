import ArgumentParser
import CLinux
import Console
import Glibc
import Reachability
import Records

/// `netwatch serve`: probes all the time, keeps a history, and shows a page.
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Probe targets all the time, keep their history, and show a status page.",
        discussion: """
            netwatch serve db.example:5432 https://example.com
            netwatch serve --config netwatch.yaml -q

            The page's address is written to standard error, and the stream of 'netwatch watch' to standard output. Without targets, the \
            page shows the path of this machine. SIGHUP loads the configuration again; SIGINT and SIGTERM end the service.

            Exit code 64: an argument is not valid. 71: the address of the page is in use, or another service has the state directory. \
            78: the configuration has errors. 128+n: ended by signal n.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Use the next free port if that of --listen is in use.")
    var nextPort = false

    @OptionGroup var output: OutputOptions

    func run() throws {
        // A heap for each of its threads would cost 16 MB with 10,000 targets. The threads seldom allocate at the same time.
        mallopt(M_ARENA_MAX, 2)
        // At the limit of a file's size (RLIMIT_FSIZE), writing fails as on a full disk.
        netwatch_signal_ignore(SIGXFSZ)
        // Signals are blocked before any thread starts, so that all threads inherit the mask.
        let signals = try Signals(and: [SIGHUP])
        let sources = try options.sources()
        let loaded = try ConfigCommand.load(options, reportsNotes: true)
        let service = try Service(loaded, sources, usesNextPort: nextPort)
        var settings = RecordStream.Settings(
            targets: loaded.configuration.targets.map(\.endpoint), format: output.streamFormat, isQuiet: output.quiet,
            isVerbose: output.verbose)
        settings.reload = { service.reload() }
        let stream = try RecordStream(
            settings, output: output.quiet ? nil : try StandardOutput(), signals: signals, report: StandardError.report)
        try stream.run(service.start).end(
            monitorEnded: Failure(ExitCode.doesNotHold, "network namespace: it no longer exists"))
    }
}
