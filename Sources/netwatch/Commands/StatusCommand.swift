import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability
import Records
import Wire

/// `netwatch status`: one settled snapshot.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the path once, and probe each target once.",
        discussion: """
            Exit code 0: all targets are up or degraded; without targets, the path is satisfied. 1: not so. 2: could not be determined. \
            A canary counts as a target. With --connect: 69: no service is running. 77: its socket may not be used.
            """
    )

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Show what the running service knows, and probe nothing; without a value, at its usual socket. The path has a slash.",
            valueName: "socket"))
    var connect: String?

    @OptionGroup var network: NetworkOptions
    @OptionGroup var targets: TargetOptions
    @OptionGroup var canary: CanaryOptions
    @OptionGroup var failure: FailureOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        if let connect { return try run(connectedTo: connect) }
        let configuration = try network.configuration()
        let rule = try failure.rule()
        let endpoints = try targets.endpoints(network)
        let timeout = try targets.timeout()
        // One result decides; the next probe would be due long after the end.
        let settings = try targets.applied(
            to: ProbeSettings(
                interval: .seconds(3600), timeout: timeout, failAfter: 1, recoverAfter: 1, families: try network.families(),
                interface: network.interface))
        let canary = try canary.target(settings, network)
        let standardOutput = output.quiet ? nil : try StandardOutput()
        let watcher = try Watcher(configuration, targets: endpoints.map { ($0, settings) } + [canary].compactMap { $0 })
        var collection = StatusCollection(
            endpoints: endpoints, canary: canary?.0, start: Moment.now, probeTimeout: timeout)
        watcher.run(&collection)
        watcher.session.stop()
        guard let document = collection.document(at: Moment.now, rule) else {
            throw Failure(
                ExitCode.undetermined, "status: the kernel did not answer within \(TimeSpan.rough(StatusCollection.settleLimit))")
        }
        if let standardOutput { try write(document, watcher.session.identity, to: standardOutput) }
        try end(document)
    }

    private func end(_ document: StatusDocument) throws {
        switch document.verdict {
        case .holds: return
        case .doesNotHold: throw SilentExit(code: ExitCode.doesNotHold)
        case .undetermined: throw SilentExit(code: ExitCode.undetermined)
        }
    }

    /// The number of targets of a page of the service, its maximum.
    private static let pageSize = 1_000

    /// Shows the state of a running service. An empty text stands for the usual socket.
    private func run(connectedTo socket: String) throws {
        if let option = MonitorOptions.list(network, targets, canary).first(where: \.isGiven)?.name {
            throw Failure.usage("--connect", "\(option) has no effect on the monitor of the service")
        }
        let rule = try failure.rule()
        let query = (["limit=\(Self.pageSize)"] + (try targets.names).map { "target=\(PercentEncoding.encode($0))" })
            .joined(separator: "&")
        let standardOutput = output.quiet ? nil : try StandardOutput()
        var status = ServiceStatus()
        var page = "/api/v1/status?\(query)"
        repeat {
            let connection = try ServiceConnection(socket.isEmpty ? nil : socket, ProcessInfo.processInfo.environment)
            let document = try connection.document(page)
            do throws(ServiceStatus.Malformed) { try status.add(document) } catch { throw connection.malformed }
            page = "/api/v1/status?\(query)&after=\(PercentEncoding.encode(status.next ?? ""))"
        } while status.next != nil
        guard let reading = status.reading(rule) else {
            throw Failure(ExitCode.undetermined, "status: the service does not know its path yet")
        }
        if let standardOutput {
            if output.json {
                standardOutput.append(line: status.json)
            } else {
                append(reading.document, names: reading.names, instance: reading.instance, to: standardOutput)
            }
            try standardOutput.flush()
        }
        try end(reading.document)
    }

    private func append(
        _ document: StatusDocument, names: [String] = [], instance: String? = nil, to output: StandardOutput
    ) {
        var text = StatusText(document: document, style: self.output.style, showsEvidence: self.output.verbose)
        (text.names, text.instance) = (names, instance)
        if isatty(STDOUT_FILENO) == 1 { text.columns = TerminalSize.columns(of: STDOUT_FILENO) }
        for line in text.lines { output.append(line: Array(line.utf8)) }
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
            append(document, to: output)
        }
        try output.flush()
    }
}
