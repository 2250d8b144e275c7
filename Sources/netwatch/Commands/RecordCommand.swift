import ArgumentParser
import Console

/// `netwatch record`: `watch`, and every input in a file.
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Watch, and write every input to a file that 'netwatch replay' runs again.",
        discussion: """
            The file holds addresses, routes and target names of this machine: only its owner can read a new one. A symbolic link is not \
            followed. With '-' or /dev/stdout the recording is the program's output, and no records are written.
            """
    )

    @Argument(help: ArgumentHelp("The recording; replaced where it exists; '-' for standard output.", valueName: "file"))
    var file: String

    @OptionGroup var stream: StreamOptions

    func run() throws {
        guard !file.isEmpty else { throw Failure.usage("record ''", "write the name of a file, or '-' for standard output") }
        try stream.run(recordingTo: file)
    }
}
