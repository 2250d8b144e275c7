import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import Records

/// `netwatch status`: one settled snapshot.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the path once, and probe each target once.",
        discussion: """
            Exit code 0: all targets are up or degraded; without targets, the path is satisfied. 1: not so. 2: could not be determined. \
            A canary counts as a target.
            """
    )

    @OptionGroup var network: NetworkOptions
    @OptionGroup var targets: TargetOptions
    @OptionGroup var canary: CanaryOptions
    @OptionGroup var failure: FailureOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let configuration = try network.configuration()
        let rule = try failure.rule()
        let endpoints = try targets.endpoints(network)
        let timeout = try targets.timeout()
        // One result decides; the next probe would be due long after the end.
        let settings = try targets.levels.applied(
            to: ProbeSettings(
                interval: .seconds(3600), timeout: timeout, failAfter: 1, recoverAfter: 1, families: try network.families(),
                interface: network.interface))
        let canary = try canary.target(settings, network)
        let standardOutput = output.quiet ? nil : try StandardOutput()
        let watcher = try Watcher(configuration, targets: endpoints.map { ($0, settings) } + [canary].compactMap { $0 })
        var collection = StatusCollection(
            endpoints: endpoints, canary: canary?.0, start: Clock.now, probeTimeout: timeout)
        watcher.run(&collection)
        watcher.session.stop()
        guard let document = collection.document(at: Clock.now, rule) else {
            throw Failure(
                ExitCode.undetermined, "status: the kernel did not answer within \(TimeSpan.rough(StatusCollection.settleLimit))")
        }
        if let standardOutput { try write(document, watcher.session.identity, to: standardOutput) }
        switch document.verdict {
        case .holds: return
        case .doesNotHold: throw SilentExit(code: ExitCode.doesNotHold)
        case .undetermined: throw SilentExit(code: ExitCode.undetermined)
        }
    }

    private func write(_ document: StatusDocument, _ identity: MonitorIdentity, to output: StandardOutput) throws {
        if self.output.json {
            let encoder = RecordEncoder(header: StreamHeader(version: CommandProgram.version, identity: identity, targets: []))
            var failure: Failure?
            document.write(with: encoder) { bytes in
                guard failure == nil else { return }
                output.append(piece: bytes)
                do throws(Failure) { try output.flush() } catch { failure = error }
            }
            if let failure { throw failure }
            output.append(line: [])
        } else {
            var text = StatusText(document: document, style: self.output.style, showsEvidence: self.output.verbose)
            if isatty(STDOUT_FILENO) == 1 { text.columns = TerminalSize.columns(of: STDOUT_FILENO) }
            for line in text.lines { output.append(line: Array(line.utf8)) }
        }
        try output.flush()
    }
}
