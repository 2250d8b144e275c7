import ArgumentParser

/// The entry of `netwatch report` in the list of commands. Another program implements it (``SeparateProgram``).
struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Show the availability of targets in a period.")

    @Argument(parsing: .captureForPassthrough)
    var arguments: [String] = []

    func run() throws { throw SeparateProgram.service.replaceThisProgram(["report"] + arguments) }
}
