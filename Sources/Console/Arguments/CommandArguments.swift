/// The command that a command line has after `--`, for commands of netwatch that run another program.
package enum CommandArguments {
    /// Splits off the command after `--` if the first argument is `name`. The parser would take its words for arguments of netwatch.
    ///
    /// - Throws: ``Failure`` with code 64 if nothing follows `--`.
    package static func split(_ arguments: [String], of name: String) throws(Failure) -> ([String], command: [String]) {
        guard arguments.first == name, let terminator = arguments.firstIndex(of: "--") else { return (arguments, []) }
        let command = Array(arguments[(terminator + 1)...])
        guard command.first?.isEmpty == false else { throw .usage("\(name) --", "the command is missing; write -- COMMAND") }
        return (Array(arguments[..<terminator]), command)
    }
}
