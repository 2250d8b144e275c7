package import ArgumentParser

/// A program of commands: help goes to standard output, every error is one line on standard error.
package enum CommandProgram {
    /// That of both programs.
    package static let version = "0.1.0"

    /// Runs the program with its arguments, and ends it with the code of what it throws.
    package static func main(_ run: ([String]) throws -> Void) {
        OpenDescriptors.prepare()
        ProgramStart.reportCrashes()
        do {
            try run(try ProgramStart.arguments())
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

    /// Parses and runs a command of `root`; argument errors become failures with one line. `prepare` completes the parsed command.
    package static func run<Root: ParsableCommand>(
        _ root: Root.Type, _ arguments: [String],
        prepare: (any ParsableCommand) -> any ParsableCommand = { $0 }
    ) throws {
        let command: any ParsableCommand
        do {
            command = try root.parseAsRoot(arguments)
        } catch {
            guard root.exitCode(for: error).isSuccess else {
                throw usageFailure(root.message(for: error), command: arguments.first)
            }
            return try show(root.fullMessage(for: error))
        }
        var running = prepare(command)
        do {
            try running.run()
        } catch  where !(error is Failure) && !(error is SilentExit) && root.exitCode(for: error).isSuccess {
            // The built-in help command asks for help by an error.
            try show(root.fullMessage(for: error))
        }
    }

    /// The parser's sentence as our line.
    package static func usageFailure(_ message: String, command: String?) -> Failure {
        let command = command.flatMap { $0.hasPrefix("-") ? nil : $0 }
        var why = message.split(separator: "\n").joined(separator: " ")
        while why.hasSuffix(".") { why.removeLast() }
        if let first = why.first, why.dropFirst().first?.isLowercase ?? false { why = first.lowercased() + why.dropFirst() }
        let help = "netwatch \(command.map { "\($0) " } ?? "")--help"
        return .usage(command ?? "usage", why.hasSuffix("?") ? "\(why) See '\(help)'" : "\(why); see '\(help)'")
    }

    /// Writes a text to standard output.
    package static func show(_ text: String) throws {
        let output = try StandardOutput()
        output.append(line: Array(text.utf8))
        try output.flush()
    }
}
