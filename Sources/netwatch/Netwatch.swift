import ArgumentParser
import Console
import Reachability

/// The program netwatch, the root of its commands.
@main
struct Netwatch: ParsableCommand {
    static let version = CommandProgram.version

    static let examples = """
        netwatch watch                      show changes until stopped
        netwatch watch --json db:5432       also watch a server; JSON for programs
        netwatch status 192.0.2.7:22        probe once; exit code 0 if it answers
        netwatch probe db:5432              probe five times; loss and round trips
        netwatch why db:5432                explain each layer up to a server
        netwatch wait db:5432 -- ./start    run a command when a server answers
        netwatch get https://HOST/FILE      download, and continue after outages and restarts
        netwatch serve db:5432              keep a history, and show a page
        """

    static let targets = """
        A TARGET is one of these. IPv6 addresses are in brackets. Only named targets are probed.
        \(Endpoint.Scheme.allCases.map(\.form).map { row($0.text, $0.explanation) }.joined(separator: "\n"))

        The marks of text: + or a check mark works, x or a cross fails, ? is degraded, pending or not known, - or a dot is not used.
        """

    private static func row(_ form: String, _ meaning: String) -> String {
        form.count < 32 ? "  \(form)\(String(repeating: " ", count: 32 - form.count))\(meaning)" : "  \(form)  \(meaning)"
    }

    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "Shows what this machine can reach over the network, reports changes, and explains failures.",
        discussion: "\(examples)\n\n\(targets)",
        version: version,
        subcommands: [
            WatchCommand.self, StatusCommand.self, ProbeCommand.self, WhyCommand.self, WaitCommand.self,
        ] + SeparateCommandEntry.commands + [RecordCommand.self, ReplayCommand.self, SchemaCommand.self]
    )

    static func main() { CommandProgram.main(run) }

    /// Parses the arguments and runs the command. Argument errors become failures with one line.
    static func run(_ arguments: [String]) throws {
        try CommandProgram.hidingPasswords(of: arguments) { try runCommand(arguments) }
    }

    private static func runCommand(_ arguments: [String]) throws {
        if let name = arguments.first, !name.hasPrefix("-") { try checkCommand(name) }
        if let separate = SeparateCommandEntry.find(arguments) { throw separate.program.replaceThisProgram(separate.arguments) }
        let (split, program) = try CommandArguments.split(arguments, of: "wait")
        let arguments =
            split.first == "watch" || split.first == "status"
            ? OptionalValue.complete(split, option: "--connect", hasOperands: true) : split
        do {
            try CommandProgram.run(Netwatch.self, TargetArguments.join(arguments)) { command in
                guard var wait = command as? WaitCommand else { return command }
                wait.command = program
                return wait
            }
        } catch let failure as Failure where split.first == "wait" && program.isEmpty {
            throw WaitCommand.explaining(failure, arguments)
        }
    }

    func run() throws {
        try CommandProgram.show(
            """
            netwatch \(Self.version): shows what this machine can reach over the network, reports changes, and explains failures

            \(Self.examples)

            \(Self.targets)

            'netwatch --help' lists the commands, 'netwatch COMMAND --help' the options of a command.
            """)
    }

    private static func checkCommand(_ name: String) throws(Failure) {
        let known = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        if !known.contains(name) {
            throw .usage(name, "unknown command; the commands are \(known.joined(separator: ", "))")
        }
    }
}
