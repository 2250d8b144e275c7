import ArgumentParser
import Console

/// The program that `netwatch get`, `put` and `beat` execute. Transfers and reports need libcurl and all of Foundation, which a monitor
/// must not load.
@main
struct TransferCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "The transfers of netwatch: 'netwatch get', 'put' and 'beat' run this program.",
        version: CommandProgram.version,
        subcommands: [GetCommand.self, PutCommand.self, BeatCommand.self]
    )

    static func main() { CommandProgram.main(run) }

    /// Parses the arguments and runs the command. Argument errors become failures with one line.
    static func run(_ arguments: [String]) throws {
        let (arguments, program) = try CommandArguments.split(arguments, of: "beat")
        do {
            try CommandProgram.run(TransferCommands.self, arguments) { command in
                guard var beat = command as? BeatCommand else { return command }
                beat.command = program
                return beat
            }
        } catch let failure as Failure where arguments.first == "beat" && program.isEmpty {
            throw BeatCommand.explaining(failure)
        }
    }

    func run() throws { try CommandProgram.show(Self.helpMessage()) }
}
