package import ArgumentParser
package import Console

extension TimeText.Choice: ExpressibleByArgument {}

/// The option for the times of lines for people.
package struct TimeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The times of text: relative (since the start), local or utc. Default: relative on a terminal, utc in a pipe.",
            valueName: "when"))
    package var time: TimeText.Choice?

    package init() {}

    /// Returns the times of the lines; `nil` for the usual ones.
    ///
    /// - Throws: ``Failure`` with code 64 together with `--json`, whose times are always UTC.
    package func text(isJSON: Bool) throws(Failure) -> TimeText? {
        guard let time else { return nil }
        if isJSON { throw .usage("--time --json", "the times of JSON are always UTC") }
        return TimeText(time) { Terminal.offset(at: $0) }
    }
}
