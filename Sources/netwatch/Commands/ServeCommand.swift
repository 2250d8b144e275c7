import ArgumentParser

/// The entry of `netwatch serve` in the list of commands. Another program implements it (``SeparateProgram``).
struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Probe targets all the time, keep their history, and show a status page.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.service.replaceThisProgram(["serve"] + arguments) }
}
