import ArgumentParser

/// The entry of `netwatch history` in the list of commands. Another program implements it (``SeparateProgram``).
struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show outages with their causes, and the times without a history.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.service.replaceThisProgram(["history"] + arguments) }
}
