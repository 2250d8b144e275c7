import ArgumentParser

/// The entry of `netwatch put` in the list of commands. Another program implements it (``SeparateProgram``).
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Upload a file, and continue it after outages.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.transfer.replaceThisProgram(["put"] + arguments) }
}
