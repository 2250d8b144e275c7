import ArgumentParser
import Console
import FoundationEssentials
import Reachability
import Records

/// `netwatch replay`: replays a recording.
struct ReplayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Replay a recording and write the identical records.",
        discussion: "With -v it also writes the records of probes, as 'netwatch record -v' does."
    )

    @Argument(help: ArgumentHelp("The recording; '-' for standard input.", valueName: "file"))
    var file: String

    @OptionGroup var time: TimeOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let time = try time.text(isJSON: output.json)
        let standardOutput = output.quiet ? nil : try StandardOutput()
        let name = file == "-" ? "standard input" : file
        let lines = try LineReader(file)
        // The records of the lines read so far are written before the next wait for input.
        lines.beforeReading = { try standardOutput?.flush() }
        do {
            var replay = try Replay { try lines.next() }
            let header = StreamHeader(
                version: CommandProgram.version, identity: replay.identity, targets: replay.targets)
            var printer = RecordPrinter(format: output.streamFormat, header: header, isVerbose: output.verbose, time: time)
            if printer.isLive { printer.columns = TerminalSize.columns(of: 1) }
            var seq = 0
            try replay.run { event in
                if case .ended = event { return }
                if case .probe = event, !output.verbose { return }
                printer.lines(Record(event: event, seq: seq)).forEach { standardOutput?.append(line: $0) }
                seq += 1
            }
        } catch let damage as Replay.DamageError {
            try standardOutput?.flush()
            throw Failure(ExitCode.badData, "\(name): line \(damage.line): \(damage.reason)")
        } catch let damage as LineReader.DamageError {
            try standardOutput?.flush()
            throw Failure(ExitCode.badData, "\(name): line \(damage.line): \(damage.why)")
        }
        try standardOutput?.flush()
    }
}
