import ArgumentParser
import Console

/// `netwatch record`: `watch`, and every input in a file.
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Watch, and write every input to a file that 'netwatch replay' runs again.",
        discussion: "The file holds addresses, routes and target names of this machine."
    )

    @Argument(help: ArgumentHelp("The recording; replaced where it exists.", valueName: "file"))
    var file: String

    @OptionGroup var stream: StreamOptions

    func run() throws {
        guard !file.isEmpty, file != "-" else {
            throw Failure.usage("record '\(file)'", "write the name of a file; standard output carries the records")
        }
        try stream.run(recordingTo: file)
    }
}
