import ArgumentParser
import Console
import FoundationEssentials

/// The options that set values of the configuration.
struct ConfigurationOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Read this file instead of those of the system and of the user.", valueName: "file"))
    var config: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The address of the page and of the API.", valueName: "addr:port"))
    var listen: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The Unix socket of the API.", valueName: "path"))
    var socket: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The directory of the history.", valueName: "directory"))
    var state: String?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The time between two checkpoints of the history.", valueName: "duration"))
    var flushEvery: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The time between probes.", valueName: "duration"))
    var interval: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The deadline of one probe.", valueName: "duration"))
    var probeTimeout: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Failed probes in a row after which a target is down.", valueName: "n"))
    var failAfter: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Successful probes in a row after which it is up.", valueName: "n"))
    var recoverAfter: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The time that a failure lasts before an incident opens.", valueName: "duration"))
    var openAfter: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The time after an incident within which a further failure continues it.", valueName: "duration"))
    var closeAfter: String?

    @Argument(help: ArgumentHelp("Also probe these targets.", valueName: "target"))
    var targets: [String] = []

    /// Returns the sources of the configuration: files, environment and these options.
    ///
    /// - Throws: ``Failure`` with code 64 if `--config` names no file, `--state` no directory, or `--socket` no socket.
    func sources() throws(Failure) -> ConfigurationSources {
        var sources = ConfigurationSources()
        guard config != "" else { throw .usage("--config ''", "names no file") }
        guard state != "" else { throw .usage("--state ''", "names no directory") }
        guard socket != "" else { throw .usage("--socket ''", "names no socket") }
        sources.file = config
        sources.environment = ProcessInfo.processInfo.environment
        let values: [(String, String, String?)] = [
            ("--listen", "listen", listen), ("--socket", "socket", socket.map(absolute)),
            ("--state", "state", state.map(absolute)),
            ("--flush-every", "flush_every", flushEvery),
            ("--interval", "interval", interval), ("--probe-timeout", "probe_timeout", probeTimeout),
            ("--fail-after", "fail_after", failAfter), ("--recover-after", "recover_after", recoverAfter),
            ("--open-after", "open_after", openAfter), ("--close-after", "close_after", closeAfter),
        ]
        sources.options = values.compactMap { option, key, value in value.map { (option, key, $0) } }
        sources.targets = TargetArguments.split(targets)
        return sources
    }

    private func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : "\(FileManager.default.currentDirectoryPath)/\(path)"
    }
}
