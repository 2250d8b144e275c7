import ArgumentParser

/// The entry of `netwatch get` in the list of commands. Another program implements it (``SeparateProgram``).
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Download files, and continue them after outages and restarts.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.transfer.replaceThisProgram(["get"] + arguments) }
}
