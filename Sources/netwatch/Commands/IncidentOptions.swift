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
        settings.openAfter = try Self.duration("--open-after", openAfter) ?? settings.openAfter
        settings.closeAfter = try Self.duration("--close-after", closeAfter) ?? settings.closeAfter
        return settings
    }

    private static func duration(_ option: String, _ text: String?) throws(Failure) -> Duration? {
        guard let text else { return nil }
        do { return try TimeSpan(allowingZero: text).duration } catch { throw .usage("\(option) \(text)", error.description) }
    }
}
