import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability

/// `netwatch status`: one settled snapshot.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the path once, and probe each target once.",
        discussion:
            "Exit code 0: all targets are up; without targets, the path is satisfied. 1: not so. 2: could not be determined."
    )

    @OptionGroup var network: NetworkOptions
    @OptionGroup var targets: TargetOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let configuration = try network.configuration()
        let endpoints = try targets.endpoints()
        let timeout = try targets.timeout()
        // One result decides; the next probe would be due long after the end.
        let settings = ProbeSettings(
            interval: .seconds(3600), timeout: timeout, failAfter: 1, recoverAfter: 1, families: try network.families(),
            interface: network.interface
        )
        let standardOutput = output.quiet ? nil : try StandardOutput()
        let watcher = try Watcher(configuration, targets: endpoints.map { ($0, settings) })
        var collection = StatusCollection(endpoints: endpoints, start: Clock.now, probeTimeout: timeout)
        watcher.run(&collection)
        watcher.session.stop()
        guard let document = collection.document(at: Clock.now) else {
            throw Failure(
                ExitCode.undetermined, "status: the kernel did not answer within \(TimeSpan.rough(StatusCollection.settleLimit))")
        }
        if let standardOutput {
            for line in lines(document, watcher.session.identity) { standardOutput.append(line: line) }
            try standardOutput.flush()
        }
        switch document.verdict {
        case .holds: return
        case .doesNotHold: throw SilentExit(code: ExitCode.doesNotHold)
        case .undetermined: throw SilentExit(code: ExitCode.undetermined)
        }
    }

    private func lines(_ document: StatusDocument, _ identity: MonitorIdentity) -> [[UInt8]] {
        if output.json {
            let header = StreamHeader(
                version: CommandProgram.version, identity: identity, targets: document.targets.map(\.endpoint.text))
            return [document.encode(with: RecordEncoder(header: header))]
        }
        var text = StatusText(document: document, style: output.style, showsEvidence: output.verbose)
        if isatty(STDOUT_FILENO) == 1 { text.columns = TerminalSize.columns(of: STDOUT_FILENO) }
        return text.lines.map { Array($0.utf8) }
    }
}
