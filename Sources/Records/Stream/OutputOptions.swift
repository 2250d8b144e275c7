import ArgumentParser
package import Console
import FoundationEssentials
import Glibc

/// The options for the format of the output.
package struct OutputOptions: ParsableArguments {
    @Flag(help: "Write JSON: one record per line for a stream, otherwise one document.")
    package var json = false

    @Option(help: ArgumentHelp("When to use colors; auto respects NO_COLOR and TERM=dumb", valueName: "when"))
    package var color = TextStyle.ColorChoice.auto

    @Flag(name: .shortAndLong, help: "Write only errors.")
    package var quiet = false

    @Flag(
        name: .shortAndLong,
        help: "Write more: each probe, the reasons for changes, all addresses, the evidence for interface types.")
    package var verbose = false

    package init() {}

    package var style: TextStyle {
        TextStyle(choice: color, isTerminal: isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    package var streamFormat: OutputFormat {
        if json { return .json }
        return isTerminal ? .live(style) : .plain(style)
    }

    private var isTerminal: Bool { isatty(1) == 1 }
}
