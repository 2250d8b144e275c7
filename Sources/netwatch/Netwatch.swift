import ArgumentParser
import Console

/// The program: the root of its commands.
@main
struct Netwatch: ParsableCommand {
    static let version = CommandProgram.version

    static let examples = """
        netwatch watch                      what changes, until stopped
        netwatch watch --json db:5432       the same and a server, for programs
        netwatch status 192.0.2.7:22        once; exit code 0 when it answers
        netwatch wait db:5432 -- ./start  runs a command when a server answers
        netwatch get https://HOST/FILE      downloads, and goes on after outages and restarts
        """

    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "Says what this machine can reach over the network, as it changes, and why not.",
        discussion: "\(examples)\n\nA TARGET is HOST:PORT, with IPv6 addresses in brackets. Nothing is probed that is not named.",
        version: version,
        subcommands: [
            WatchCommand.self, StatusCommand.self, WaitCommand.self, GetCommand.self, PutCommand.self, RecordCommand.self,
            ReplayCommand.self, SchemaCommand.self,
        ]
    )

    /// Commands of the contract that come with later versions.
    static let laterCommands: Set<String> = ["probe", "why", "serve", "history", "report", "config"]

    static func main() { CommandProgram.main(run) }

    /// Parses and runs; argument errors become failures with one line.
    static func run(_ arguments: [String]) throws {
        if let name = arguments.first, !name.hasPrefix("-") { try checkCommand(name) }
        if let transfer = TransferProgram.arguments(of: arguments) { throw TransferProgram.replaceThisProgram(transfer) }
        let (arguments, program) = try splitProgram(arguments)
        try CommandProgram.run(Netwatch.self, arguments) { command in
            guard var wait = command as? WaitCommand else { return command }
            wait.command = program
            return wait
        }
    }

    func run() throws {
        try CommandProgram.show(
            """
            netwatch \(Self.version): what this machine can reach over the network, as it changes, and why not

            \(Self.examples)

            'netwatch --help' lists the commands, 'netwatch COMMAND --help' the options of one.
            """)
    }

    private static func checkCommand(_ name: String) throws(Failure) {
        let known = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        if laterCommands.contains(name) {
            throw .usage(name, "this command comes with a later version; \(version) has \(known.joined(separator: ", "))")
        }
        if !known.contains(name) {
            throw .usage(name, "unknown command; the commands are \(known.joined(separator: ", "))")
        }
    }

    /// Splits off what stands behind `--` of `wait`.
    private static func splitProgram(_ arguments: [String]) throws(Failure) -> ([String], program: [String]) {
        guard arguments.first == "wait", let terminator = arguments.firstIndex(of: "--") else { return (arguments, []) }
        let program = Array(arguments[(terminator + 1)...])
        guard program.first?.isEmpty == false else { throw .usage("wait --", "the command is missing; write -- COMMAND") }
        return (Array(arguments[..<terminator]), program)
    }
}
