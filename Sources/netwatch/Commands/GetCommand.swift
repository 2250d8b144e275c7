import ArgumentParser

/// `netwatch get`, for the list of commands: another program has it (``TransferProgram``).
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Download files, through outages and restarts.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw TransferProgram.replaceThisProgram(["get"] + arguments) }
}
