package import ArgumentParser
internal import Reachability

/// The frame of a program with commands: it writes help to standard output, and each error as one line to standard error.
package enum CommandProgram {
    /// The version of both programs.
    package static let version = PackageVersion.text

    /// Runs the program with its arguments, and exits with the code of the error that it throws.
    package static func main(_ run: ([String]) throws -> Void) {
        OpenDescriptors.prepare()
        ProgramStart.reportCrashes()
        do {
            try run(try ProgramStart.arguments())
        } catch let failure as Failure {
            StandardError.report(failure)
            OpenDescriptors.exit(failure.code)
        } catch let exit as SilentExit {
            OpenDescriptors.exit(exit.code)
        } catch {
            StandardError.report(Failure(ExitCode.internalError, "internal error: \(error)"))
            OpenDescriptors.exit(ExitCode.internalError)
        }
    }

    /// Parses and runs a command of `root`. Argument errors become failures with one line. `prepare` may change the parsed
    /// command. No failure shows the password of a URL among the arguments.
    package static func run<Root: ParsableCommand>(
        _ root: Root.Type, _ arguments: [String],
        prepare: (any ParsableCommand) -> any ParsableCommand = { $0 }
    ) throws {
        try hidingPasswords(of: arguments) { try parseAndRun(root, arguments, prepare: prepare) }
    }

    /// Runs `body`. Its failures show no password of a URL among the arguments.
    package static func hidingPasswords(of arguments: [String], _ body: () throws -> Void) throws {
        do { try body() } catch let failure as Failure { throw failure.withoutPasswords(of: arguments) }
    }

    private static func parseAndRun<Root: ParsableCommand>(
        _ root: Root.Type, _ arguments: [String], prepare: (any ParsableCommand) -> any ParsableCommand
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
            // The built-in help command throws an error to request help.
            try show(root.fullMessage(for: error))
        }
    }

    /// Converts the parser's message to one line in the program's format.
    package static func usageFailure(_ message: String, command: String?) -> Failure {
        let command = command.flatMap { $0.hasPrefix("-") ? nil : $0 }
        if let failure = ForeignOption.failure(message, command: command) { return failure }
        var why = message.split(separator: "\n").joined(separator: " ")
        while why.hasSuffix(".") { why.removeLast() }
        if let first = why.first, why.dropFirst().first?.isLowercase ?? false { why = first.lowercased() + why.dropFirst() }
        let help = "netwatch \(command.map { "\($0) " } ?? "")--help"
        return .usage(command ?? "usage", why.hasSuffix("?") ? "\(why) See '\(help)'" : "\(why); see '\(help)'")
    }

    /// Writes a text to standard output, followed by a newline.
    package static func show(_ text: String) throws {
        let output = try StandardOutput()
        output.append(line: Array(text.utf8))
        try output.flush()
    }
}

extension TextStyle.ColorChoice: ExpressibleByArgument {}
