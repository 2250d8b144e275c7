import ArgumentParser
import Console
import FoundationEssentials
import Reachability

/// The targets, and the deadline of one probe.
struct TargetOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "HOST:PORT, tls://HOST[:PORT], or a URL with http or https; IPv6 addresses in brackets.", valueName: "target"))
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
        return endpoints
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
        try TimeSpan.option("--probe-timeout", probeTimeout) ?? .seconds(3)
    }
}

extension Endpoint {
    /// Returns why the endpoint can never be probed with these families; `nil` if it can. A name may have addresses of any family.
    func exclusion(by families: Set<IPAddress.Family>) -> String? {
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
        help: ArgumentHelp("Failed probes in a row after which a target is down (default: 2).", valueName: "n"))
    var failAfter: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Successful probes in a row after which it is up (default: 1).", valueName: "n"))
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
        let (failAfter, recoverAfter) = (failAfter ?? 2, recoverAfter ?? 1)
        for (option, number) in [("--fail-after", failAfter), ("--recover-after", recoverAfter)]
        where !(1...1_000_000).contains(number) {
            throw .usage("\(option) \(number)", "must be from 1 to 1000000")
        }
        let quality = QualityLimits(responseTime: try TimeSpan.option("--response-limit", responseLimit))
        return try targets.levels.applied(
            to: ProbeSettings(
                interval: try TimeSpan.option("--interval", interval) ?? .seconds(10), timeout: try targets.timeout(),
                failAfter: failAfter, recoverAfter: recoverAfter, families: try network.families(),
                interface: network.interface, quality: quality))
    }
}
