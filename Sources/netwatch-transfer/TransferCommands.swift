import ArgumentParser
import Console

/// The program that `netwatch get` and `netwatch put` execute. Transfers need libcurl and all of Foundation, which a monitor must
/// not load.
@main
struct TransferCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "The transfers of netwatch: 'netwatch get' and 'netwatch put' run this program.",
        version: CommandProgram.version,
        subcommands: [GetCommand.self, PutCommand.self]
    )

    static func main() { CommandProgram.main(run) }

    /// Parses the arguments and runs the command. Argument errors become failures with one line.
    static func run(_ arguments: [String]) throws { try CommandProgram.run(TransferCommands.self, arguments) }

    func run() throws { try CommandProgram.show(Self.helpMessage()) }
}
