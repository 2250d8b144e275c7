import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability

/// `netwatch why`: explains the state of a target, or of the path, layer by layer.
struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Explain why a target is up or down, layer by layer; without a target, explain the path.",
        discussion: """
            netwatch why db:5432
            netwatch why --json 192.0.2.7:22 | jq '.layers[] | select(.ok == false)'

            The verdict is that of 'netwatch watch': a failure needs a second probe that confirms it. If the target is silent, connections \
            with small hop limits find the last router that answers, within a second.

            Exit code 0: the target is up or degraded; without a target, the path is satisfied. 1: not so. 2: could not be determined.
            """
    )

    @Argument(help: ArgumentHelp("HOST:PORT or tcp://HOST:PORT; IPv6 addresses in brackets.", valueName: "target"))
    var target: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The deadline of one probe, including name resolution (default: 3s).", valueName: "duration"))
    var probeTimeout: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let configuration = try network.configuration()
        let endpoint = try self.endpoint()
        let settings = ProbeSettings(
            timeout: try TimeSpan.option("--probe-timeout", probeTimeout) ?? .seconds(3), families: try network.families(),
            interface: network.interface)
        let standardOutput = output.quiet ? nil : try StandardOutput()
        let examination = try TargetExamination(configuration, endpoint, settings)
        guard let evidence = examination.run() else {
            throw Failure(
                ExitCode.undetermined, "why: the kernel did not answer within \(TimeSpan.rough(StatusCollection.settleLimit))")
        }
        let document = WhyDocument(moment: Clock.now, evidence: evidence)
        if let standardOutput {
            for line in lines(document) { standardOutput.append(line: line) }
            try standardOutput.flush()
        }
        switch document.verdict {
        case .holds: return
        case .doesNotHold: throw SilentExit(code: ExitCode.doesNotHold)
        case .undetermined: throw SilentExit(code: ExitCode.undetermined)
        }
    }

    private func endpoint() throws(Failure) -> Endpoint? {
        guard let target else { return nil }
        do { return try Endpoint(target) } catch { throw .usage("target '\(target)'", error.description) }
    }

    private func lines(_ document: WhyDocument) -> [[UInt8]] {
        if output.json { return [document.encode()] }
        let columns = isatty(STDOUT_FILENO) == 1 ? TerminalSize.columns(of: STDOUT_FILENO) : nil
        return WhyText(document: document, style: output.style, columns: columns).lines.map { Array($0.utf8) }
    }
}
