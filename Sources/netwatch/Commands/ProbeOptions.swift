import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// The targets, and the deadline of one probe.
struct TargetOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "HOST:PORT, or a target of another kind, as netwatch --help lists them; IPv6 addresses in brackets.",
            valueName: "target"))
    var arguments: [String] = []

    @Option(
        name: .customLong("targets"), parsing: .unconditional,
        help: ArgumentHelp(
            "Also the targets in this file, one a line; '#' begins a comment, '-' is standard input.", valueName: "file"))
    var file: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The deadline of one probe, including name resolution (default: 3s).", valueName: "duration"))
    var probeTimeout: String?

    @OptionGroup var packets: PacketOptions
    @OptionGroup var levels: LevelOptions

    /// The targets of the command line.
    var targets: [String] { TargetArguments.split(arguments) }

    /// The targets of the command line, then those of the file.
    ///
    /// - Throws: ``Failure`` with code 64 for a malformed target, or an address of a family that the options exclude. In the file the
    ///   code is 65.
    func endpoints(_ network: NetworkOptions) throws -> [Endpoint] {
        let families = try network.families()
        var endpoints: [Endpoint] = []
        for text in targets {
            let endpoint: Endpoint
            do { endpoint = try Endpoint(text) } catch { throw Failure.usage("target '\(text)'", error.description) }
            // Only the proxy's address is connected to.
            let isBehindProxy = levels.proxy != nil && endpoint.scheme.usesHTTP
            if !isBehindProxy, let problem = endpoint.exclusion(by: families) { throw Failure.usage("target '\(text)'", problem) }
            endpoints.append(endpoint)
        }
        if let file { endpoints += try TargetFile.read(file, families: families) }
        if levels.proxy != nil, !endpoints.isEmpty, !endpoints.contains(where: \.scheme.usesHTTP) {
            throw Failure.usage("--proxy", "no target is http:// or https://; the others are connected to without a proxy")
        }
        var settings = try packets.applied(to: ProbeSettings(families: families))
        if let proxy = levels.proxy { try? settings.http.setProxy(proxy, except: levels.request.proxyExceptions) }
        for assignment in levels.assignments { try settings.set(assignment) }
        return try endpoints.map { endpoint in
            if let problem = endpoint.exclusion(bySourceOf: settings) {
                throw Failure.usage("target '\(endpoint.text)'", problem)
            }
            let endpoint = endpoint.scheme.kind.replacement(of: endpoint, settings) ?? endpoint
            if let lack = endpoint.scheme.kind.lack(in: settings) { throw Failure.usage("target '\(endpoint.text)'", lack) }
            return endpoint
        }
    }

    /// Returns the settings with the options for packets, and for what follows a connection.
    func applied(to settings: ProbeSettings) throws(Failure) -> ProbeSettings {
        try levels.applied(to: try packets.applied(to: settings))
    }

    /// The texts of the targets of the command line and of the file. For a service, a target may be an identifier or a name of its configuration.
    var names: [String] {
        get throws {
            let names = try targets + (file.map { try TargetFile.read($0, families: [.v4, .v6]).map(\.text) } ?? [])
            guard names.allSatisfy({ !$0.isEmpty }) else { throw Failure.usage("target ''", "is empty") }
            return names
        }
    }

    func timeout() throws(Failure) -> Duration {
        try TimeSpan.option("--probe-timeout", probeTimeout) ?? ProbeSettings().timeout
    }
}

extension Endpoint {
    /// Returns why the endpoint can never be probed with these families; `nil` if it can. A name may have addresses of any family.
    func exclusion(by families: Set<IPAddress.Family>) -> String? {
        if scheme.kind.isReported { return "reports to a service, which --connect names" }
        guard case .address(let address, _) = host, !families.contains(address.family) else { return nil }
        return address.family == .v4 ? "is an IPv4 address, which -6 excludes" : "is an IPv6 address, which -4 excludes"
    }
}

/// The options for the interval of probes and for the number of results that change a target's status.
struct PacingOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The time between probes (default: 10s; for wait from 250ms to 1s).", valueName: "duration"))
    var interval: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Failed probes in a row after which a target is down (default: \(ProbeSettings().failAfter)).", valueName: "n"))
    var failAfter: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Successful probes in a row after which it is up (default: \(ProbeSettings().recoverAfter)).", valueName: "n"))
    var recoverAfter: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The median response time of the last 20 probes from which a target is degraded (default: no limit).",
            valueName: "duration"))
    var responseLimit: String?

    /// Returns the settings of targets for which somebody waits. Unless the user gives an interval, it begins at 250 ms and grows to 1 s.
    /// Both are longer for more than 250 targets, of which at most a thousand are probed per second, but at most 10 s.
    func eagerSettings(_ targets: TargetOptions, _ network: NetworkOptions, count: Int) throws(Failure) -> ProbeSettings {
        var settings = try settings(targets, network)
        guard interval == nil else { return settings }
        let share = Duration.milliseconds(min(10_000, count))
        settings.initialInterval = max(.milliseconds(250), share)
        settings.interval = max(.seconds(1), share)
        // The budget of bytes limits the probes over a metered interface, which somebody waits for.
        settings.metered.intervalFactor = 1
        return settings
    }

    func settings(_ targets: TargetOptions, _ network: NetworkOptions) throws(Failure) -> ProbeSettings {
        var settings = ProbeSettings(
            timeout: try targets.timeout(), families: try network.families(), interface: network.interface,
            quality: QualityLimits(responseTime: try TimeSpan.option("--response-limit", responseLimit)))
        settings.interval = try TimeSpan.option("--interval", interval) ?? settings.interval
        settings.failAfter = try Self.count("--fail-after", failAfter) ?? settings.failAfter
        settings.recoverAfter = try Self.count("--recover-after", recoverAfter) ?? settings.recoverAfter
        return try targets.applied(to: settings)
    }

    private static func count(_ option: String, _ number: Int?) throws(Failure) -> Int? {
        let limits = ProbeSettings.resultCounts
        guard let number, !limits.contains(number) else { return number }
        throw .usage("\(option) \(number)", "must be from \(limits.lowerBound) to \(limits.upperBound)")
    }
}
