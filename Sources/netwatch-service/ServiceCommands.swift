import ArgumentParser
import Console
import Glibc

/// The program that `netwatch serve`, `history`, `report` and `config` execute. The service needs a web server, a database and YAML,
/// which a monitor must not load.
@main
struct ServiceCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "The service of netwatch: 'netwatch serve', 'history', 'report' and 'config' run this program.",
        version: CommandProgram.version,
        subcommands: [ServeCommand.self, HistoryCommand.self, ReportCommand.self, ConfigCommand.self]
    )

    static func main() { CommandProgram.main(run) }

    /// Parses the arguments and runs the command. Argument errors become failures with one line.
    static func run(_ arguments: [String]) throws {
        // The service handles it as soon as it has loaded its configuration. Until then it would end the program.
        if arguments.first == ServeCommand.configuration.commandName { Signals.block(SIGHUP) }
        // Only 'history' and 'report' have the option, and neither has operands.
        let arguments = OptionalValue.complete(arguments, option: "--connect", hasOperands: false)
        try CommandProgram.run(ServiceCommands.self, TargetArguments.join(arguments))
    }

    func run() throws { try CommandProgram.show(Self.helpMessage()) }
}
