/// The targets among the arguments of a command.
///
/// swift-argument-parser 1.8 needs a time that grows with the square of the number of positional arguments: two seconds for 10,000.
/// It therefore receives many targets as one argument, which ``split(_:)`` divides again.
package enum TargetArguments {
    /// The commands whose positional arguments are targets, from the third one in a row at the latest. The name of the command is the first.
    package static let commands: Set<String> = [
        "watch", "status", "probe", "why", "wait", "record", "serve", "config",
    ]
    /// The number of arguments in a row that are never joined. The first one may be the value of an option, and the second one the
    /// file of `record`, or `check` of `config`.
    private static let leading = 2
    /// No argument of a program contains NUL (execve(2)).
    private static let separator: UInt8 = 0

    /// Joins the arguments of a command that can only be targets.
    package static func join(_ arguments: [String]) -> [String] {
        guard let name = arguments.first, commands.contains(name) else { return arguments }
        var (joined, row): ([String], [String]) = ([], [])
        for argument in arguments + ["-"] {
            guard argument.utf8.first == UInt8(ascii: "-") else {
                row.append(argument)
                continue
            }
            joined += row.prefix(leading)
            if row.count > leading { joined.append(row[leading...].joined(separator: String(UnicodeScalar(separator)))) }
            row = []
            joined.append(argument)
        }
        return Array(joined.dropLast())
    }

    /// Returns the targets in arguments that ``join(_:)`` may have joined.
    package static func split(_ arguments: [String]) -> [String] {
        arguments.flatMap { argument in
            argument.utf8.split(separator: separator, omittingEmptySubsequences: false).map { String(Substring($0)) }
        }
    }
}
