import ArgumentParser
import Console
import Reachability

/// The options that decide which failures are incidents.
struct IncidentOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The time that a failure lasts before an incident opens (default: 20s).", valueName: "duration"))
    var openAfter: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The time after an incident within which a further failure continues it (default: 0).", valueName: "duration"))
    var closeAfter: String?

    /// Returns settings with the times of incidents.
    func applied(to settings: ProbeSettings) throws(Failure) -> ProbeSettings {
        var settings = settings
        settings.openAfter = try TimeSpan.option("--open-after", openAfter, allowsZero: true) ?? settings.openAfter
        settings.closeAfter = try TimeSpan.option("--close-after", closeAfter, allowsZero: true) ?? settings.closeAfter
        return settings
    }
}
