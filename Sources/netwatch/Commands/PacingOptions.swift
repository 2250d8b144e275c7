import ArgumentParser
import Console
import FoundationEssentials
import Reachability

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
