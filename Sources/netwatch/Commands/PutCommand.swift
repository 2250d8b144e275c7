import ArgumentParser

/// The entry of `netwatch put` in the list of commands. Another program implements it (``TransferProgram``).
struct PutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Upload a file, and continue it after outages.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw TransferProgram.replaceThisProgram(["put"] + arguments) }
}
