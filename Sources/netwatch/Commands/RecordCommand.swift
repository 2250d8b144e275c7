import ArgumentParser
import Console

/// `netwatch record`: like `watch`, and it writes every input to a file.
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Watch, and write every input to a file for 'netwatch replay'.",
        discussion: """
            The file contains addresses, routes and target names of this machine: a new file is readable only by its owner. Symbolic links \
            are not followed. With '-' or /dev/stdout the recording is written to standard output, and no records are written.
            """
    )

    @Argument(help: ArgumentHelp("The recording; an existing file is replaced; '-' for standard output.", valueName: "file"))
    var file: String

    @OptionGroup var targets: TargetOptions
    @OptionGroup var stream: StreamOptions

    func run() throws {
        guard !file.isEmpty else { throw Failure.usage("record ''", "write the name of a file, or '-' for standard output") }
        try stream.run(targets, recordingTo: file)
    }
}
