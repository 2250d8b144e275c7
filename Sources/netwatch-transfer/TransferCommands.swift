import ArgumentParser
import Console

/// The program that `netwatch get` and `netwatch put` become: transfers need libcurl and all of Foundation, which a monitor shall not have in memory.
@main
struct TransferCommands: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netwatch",
        abstract: "The transfers of netwatch: 'netwatch get' and 'netwatch put' run this program.",
        version: CommandProgram.version,
        subcommands: [GetCommand.self, PutCommand.self]
    )

    static func main() { CommandProgram.main(run) }

    /// Parses and runs; argument errors become failures with one line.
    static func run(_ arguments: [String]) throws { try CommandProgram.run(TransferCommands.self, arguments) }

    func run() throws { try CommandProgram.show(Self.helpMessage()) }
}
