import ArgumentParser

/// `netwatch put`, for the list of commands: another program has it (``TransferProgram``).
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Upload a file, through outages.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw TransferProgram.replaceThisProgram(["put"] + arguments) }
}
