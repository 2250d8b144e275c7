import ArgumentParser

/// A command that another program implements (``SeparateProgram``). The parser needs a type for each entry of the list of commands.
protocol SeparateCommand: ParsableCommand {
    static var entry: SeparateCommandEntry { get }
    /// The arguments after the name of the command, as they are.
    var arguments: [String] { get }
}

/// What this program knows of such a command.
struct SeparateCommandEntry {
    let name: String
    let program: SeparateProgram
    let abstract: String

    init(_ name: String, of program: SeparateProgram, _ abstract: String) {
        (self.name, self.program, self.abstract) = (name, program, abstract)
    }

    /// All such commands, in the order of the list of commands.
    static let commands: [any SeparateCommand.Type] = [
        GetCommand.self, PutCommand.self, BeatCommand.self, ServeCommand.self, HistoryCommand.self, ReportCommand.self,
        ConfigCommand.self,
    ]

    /// Returns the program that implements the command in these arguments, and its arguments; `nil` if this program implements it.
    static func find(_ arguments: [String]) -> (program: SeparateProgram, arguments: [String])? {
        guard let first = arguments.first else { return nil }
        let isHelp = first == "help" && arguments.count > 1
        let command = isHelp ? arguments[1] : first
        guard let program = commands.first(where: { $0.entry.name == command })?.entry.program else { return nil }
        return (program, isHelp ? [command] + arguments.dropFirst(2) + ["--help"] : arguments)
    }
}

extension SeparateCommand {
    static var configuration: CommandConfiguration {
        CommandConfiguration(commandName: entry.name, abstract: entry.abstract)
    }

    func run() throws { throw Self.entry.program.replaceThisProgram([Self.entry.name] + arguments) }
}

struct GetCommand: SeparateCommand {
    static let entry = SeparateCommandEntry(
        "get", of: .transfer, "Download files, and continue them after outages and restarts.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct PutCommand: SeparateCommand {
    static let entry = SeparateCommandEntry("put", of: .transfer, "Upload a file, and continue it after outages.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct BeatCommand: SeparateCommand {
    static let entry = SeparateCommandEntry("beat", of: .transfer, "Run a job, and report its start and its end to a service.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct ServeCommand: SeparateCommand {
    static let entry = SeparateCommandEntry(
        "serve", of: .service, "Probe targets all the time, keep their history, and show a status page.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct HistoryCommand: SeparateCommand {
    static let entry = SeparateCommandEntry(
        "history", of: .service, "Show outages with their causes, and the times without a history.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct ReportCommand: SeparateCommand {
    static let entry = SeparateCommandEntry("report", of: .service, "Show the availability of targets in a period.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct ConfigCommand: SeparateCommand {
    static let entry = SeparateCommandEntry("config", of: .service, "Check, show or write the configuration of the service.")
    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}
