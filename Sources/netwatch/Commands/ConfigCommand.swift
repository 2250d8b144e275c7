import ArgumentParser

/// The entry of `netwatch config` in the list of commands. Another program implements it (``SeparateProgram``).
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check, show or write the configuration of the service.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.service.replaceThisProgram(["config"] + arguments) }
}
