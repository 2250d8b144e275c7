import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Records

/// The options for the format of the output.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Write JSON: one record per line for a stream, otherwise one document.")
    var json = false

    @Option(help: ArgumentHelp("When to use colors; auto respects NO_COLOR and TERM=dumb", valueName: "when"))
    var color = TextStyle.ColorChoice.auto

    @Flag(name: .shortAndLong, help: "Write only errors.")
    var quiet = false

    @Flag(
        name: .shortAndLong,
        help: "Write more: each probe, the reasons for changes, all addresses, the evidence for interface types.")
    var verbose = false

    var style: TextStyle {
        TextStyle(choice: color, isTerminal: isTerminal, environment: ProcessInfo.processInfo.environment)
    }

    var streamFormat: OutputFormat {
        if json { return .json }
        return isTerminal ? .live(style) : .plain(style)
    }

    private var isTerminal: Bool { isatty(1) == 1 }
}
