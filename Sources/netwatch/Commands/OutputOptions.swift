import ArgumentParser
import Console
import FoundationEssentials
import Glibc

/// Options that say how results are written.
struct OutputOptions: ParsableArguments {
    @Flag(help: "JSON: one record a line for a stream, else one document.")
    var json = false

    @Option(help: ArgumentHelp("Colours; auto heeds NO_COLOR and TERM=dumb", valueName: "when"))
    var color = TextStyle.ColorChoice.auto

    @Flag(name: .shortAndLong, help: "Write nothing but errors.")
    var quiet = false

    @Flag(
        name: .shortAndLong,
        help: "Write more: each probe, the reasons of changes, all addresses, the evidence of interface types.")
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
