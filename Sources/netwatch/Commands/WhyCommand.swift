import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import Records

/// `netwatch why`: explains the state of targets, or of the path, layer by layer.
struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Explain why a target is up or down, layer by layer; without a target, explain the path.",
        usage: "netwatch why [<options>] [<target>]",
        discussion: """
            netwatch why db:5432
            netwatch why --json 192.0.2.7:22 | jq '.layers[] | select(.ok == false)'
            netwatch why --targets servers.txt

            A failure needs a second probe that confirms it, and each address of a name is probed. If the target is silent, connections \
            with small hop limits find the last router that answers, and the gateway is asked whether it is alive.

            Exit code 0: all targets are up or degraded; without a target, the path is satisfied. 1: not so. 2: could not be determined. \
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
        if let second = targets.targets.dropFirst().first {
            throw Failure.usage("why", "unexpected argument '\(second)'; see 'netwatch why --help'")
        }
        let rule = try failure.rule()
        let endpoints = try targets.endpoints(network)
        var settings = try targets.applied(
            to: ProbeSettings(
                timeout: try targets.timeout(), families: try network.families(), interface: network.interface))
        settings.countsConfirmations = true
        let canary = try canary.target(settings, network)
        let writer = WhyWriter(output.quiet ? nil : try StandardOutput(), output, isList: targets.file != nil)
        let examination = try TargetExamination(configuration, settings, canary: canary)
        defer { examination.stop() }
        var verdicts: [StatusDocument.Verdict] = []
        let isSettled = try examination.run(endpoints) { evidence in
            let document = WhyDocument(moment: Moment.now, evidence: evidence, canary: examination.canaryUpdate, rule: rule)
            verdicts.append(document.verdict)
            try writer.write(document)
        }
        guard isSettled else {
            throw Failure(
                ExitCode.undetermined, "why: the kernel did not answer within \(TimeSpan.rough(StatusCollection.settleLimit))")
        }
        try writer.finish()
        if verdicts.contains(.doesNotHold) { throw SilentExit(code: ExitCode.doesNotHold) }
        if verdicts.contains(.undetermined) { throw SilentExit(code: ExitCode.undetermined) }
    }
}

/// The output of `why`: the diagnoses as text or JSON. The targets of a file have one JSON document with an array.
private final class WhyWriter {
    private let standardOutput: StandardOutput?
    private let options: OutputOptions
    private let isList: Bool
    private var count = 0
    /// The lines about the canary, which follow all diagnoses.
    private var canaryLines: [String] = []

    init(_ standardOutput: StandardOutput?, _ options: OutputOptions, isList: Bool) {
        (self.standardOutput, self.options, self.isList) = (standardOutput, options, isList)
    }

    func write(_ document: WhyDocument) throws(Failure) {
        guard let standardOutput else { return }
        defer { count += 1 }
        if options.json {
            let start = count == 0 ? Array(WhyDocument.listStart(document.moment).utf8) : [UInt8(ascii: ",")]
            standardOutput.append(piece: (isList ? start : []) + document.encode())
        } else {
            if count > 0 { standardOutput.append(line: []) }
            let columns = isatty(STDOUT_FILENO) == 1 ? TerminalSize.columns(of: STDOUT_FILENO) : nil
            let text = WhyText(document: document, style: options.style, columns: columns)
            for line in text.lines { standardOutput.append(line: Array(line.utf8)) }
            canaryLines = text.canaryLines
        }
        try standardOutput.flush()
    }

    func finish() throws(Failure) {
        guard let standardOutput else { return }
        if options.json {
            standardOutput.append(line: isList ? Array(WhyDocument.listEnd.utf8) : [])
        } else {
            if count > 1, !canaryLines.isEmpty { standardOutput.append(line: []) }
            for line in canaryLines { standardOutput.append(line: Array(line.utf8)) }
        }
        try standardOutput.flush()
    }
}
