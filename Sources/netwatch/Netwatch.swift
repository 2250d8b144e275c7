import ArgumentParser
import FoundationEssentials
import Reachability

/// The program: the root of its commands.
@main
struct Netwatch: ParsableCommand {
    static let version = "0.1.0"

    static let examples = """
        netwatch watch                      what changes, until stopped
        netwatch watch --json db:5432       the same and a server, for programs
        netwatch status 192.0.2.7:22        once; exit code 0 when it answers
        netwatch wait db:5432 -- ./start  runs a command when a server answers
        """

    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "Says what this machine can reach over the network, as it changes, and why not.",
        discussion: "\(examples)\n\nA TARGET is HOST:PORT, with IPv6 addresses in brackets. Nothing is probed that is not named.",
        version: version,
        subcommands: [
            WatchCommand.self, StatusCommand.self, WaitCommand.self, RecordCommand.self, ReplayCommand.self, SchemaCommand.self,
        ]
    )

    /// Commands of the contract that come with later versions.
    static let laterCommands: Set<String> = ["probe", "why", "get", "put", "serve", "history", "report", "config"]

    static func main() {
        OpenDescriptors.prepare()
        do {
            try run(Array(CommandLine.arguments.dropFirst()))
        } catch let failure as Failure {
            StandardError.say(failure)
            OpenDescriptors.exit(failure.code)
        } catch let exit as SilentExit {
            OpenDescriptors.exit(exit.code)
        } catch {
            StandardError.say(Failure(ExitCode.internalError, "internal error: \(error)"))
            OpenDescriptors.exit(ExitCode.internalError)
        }
    }

    /// Parses and runs; argument errors become failures with one line.
    static func run(_ arguments: [String]) throws {
        if let name = arguments.first, !name.hasPrefix("-") { try checkCommand(name) }
        let (arguments, program) = try splitProgram(arguments)
        let command: any ParsableCommand
        do {
            command = try parseAsRoot(arguments)
        } catch {
            guard exitCode(for: error).isSuccess else { throw usageFailure(message(for: error), command: arguments.first) }
            return try show(fullMessage(for: error))
        }
        var running = command
        if var wait = command as? WaitCommand {
            wait.command = program
            running = wait
        }
        do {
            try running.run()
        } catch  where !(error is Failure) && !(error is SilentExit) && exitCode(for: error).isSuccess {
            // The built-in help command asks for help by an error.
            try show(fullMessage(for: error))
        }
    }

    func run() throws {
        try Self.show(
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

    /// The parser's sentence as our line.
    static func usageFailure(_ message: String, command: String?) -> Failure {
        let command = command.flatMap { $0.hasPrefix("-") ? nil : $0 }
        var why = message.split(separator: "\n").joined(separator: " ")
        while why.hasSuffix(".") { why.removeLast() }
        if let first = why.first, why.dropFirst().first?.isLowercase ?? false { why = first.lowercased() + why.dropFirst() }
        let help = "netwatch \(command.map { "\($0) " } ?? "")--help"
        return .usage(command ?? "usage", why.hasSuffix("?") ? "\(why) See '\(help)'" : "\(why); see '\(help)'")
    }

    private static func show(_ text: String) throws {
        let output = try StandardOutput()
        output.append(line: Array(text.utf8))
        try output.flush()
    }
}
