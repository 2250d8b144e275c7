import ArgumentParser
import Console
import FoundationEssentials
import Glibc
import Reachability

/// Checks, shows and writes the configuration of the service.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check, show or write the configuration of 'netwatch serve'.",
        subcommands: [CheckCommand.self, ShowCommand.self, InitCommand.self])
}

extension ConfigCommand {
    /// Reports the errors of the configuration, all at once.
    struct CheckCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Report all errors of the configuration. The exit code is then 78, or 64 if only arguments have errors.")

        @OptionGroup var options: ConfigurationOptions

        func run() throws {
            let loaded = try ConfigCommand.load(options, reportsNotes: true)
            let configuration = loaded.configuration
            let files = loaded.files.isEmpty ? "no file" : loaded.files.joined(separator: ", ")
            try CommandProgram.show("\(files): no error, \(Self.count(configuration.targets.count, "target"))")
        }

        private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
    }

    /// Prints the combined configuration.
    struct ShowCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print the combined configuration as YAML, with the source of each value.")

        @OptionGroup var options: ConfigurationOptions

        func run() throws {
            let text = ConfigurationText(try ConfigCommand.load(options).tree)
            try CommandProgram.show(text.lines.joined(separator: "\n"))
        }
    }

    /// Writes an example.
    struct InitCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init", abstract: "Write a configuration with comments. An existing file is never replaced.")

        @Argument(
            help: ArgumentHelp(
                "The new file, '-' for standard output (default: that of the user; root must name it).", valueName: "file"))
        var file: String?

        func run() throws {
            let standard = ConfigurationSources.userFolder(ProcessInfo.processInfo.environment)
            if file == nil, geteuid() == 0 {
                // The file of root's home is read by no service, and that of the system by the next start of one.
                let system = "\(ConfigurationSources.systemFolder)/\(ConfigurationSources.fileName)"
                throw Failure.usage(
                    "config init", "as root, name the file: 'netwatch config init \(system)' for the system's service, or '-'")
            }
            guard let path = file ?? standard.map({ "\($0)/\(ConfigurationSources.fileName)" }) else {
                throw Failure.usage("config init", "HOME is not set; name the file")
            }
            guard path != "-" else { return try CommandProgram.show(ConfigurationExample.text) }
            // Creating the file reports why the folder is missing.
            if file == nil, let standard {
                try? FileManager.default.createDirectory(atPath: standard, withIntermediateDirectories: true)
            }
            try NewFile.write(Array(ConfigurationExample.text.utf8), to: path)
            try CommandProgram.show("\(path): written; 'netwatch config check' checks it")
        }
    }

    /// Reads the configuration, and reports errors, a line each, and notes if `reportsNotes` is set.
    ///
    /// - Throws: ``SilentExit`` with code 64 if only the command line has errors, otherwise with code 78.
    static func load(_ options: ConfigurationOptions, reportsNotes: Bool = false) throws -> ConfigurationSources.Loaded {
        let loaded = try options.sources().load()
        // The named file itself cannot be read. A loop of links, a FIFO and a file that is too large are errors of the configuration.
        if let file = options.config, let problem = loaded.problems.first(where: { $0.origin == .path(file) }) {
            let isMissing = access(file, R_OK) != 0 && errno != ELOOP
            throw Failure(isMissing ? ExitCode.noInput : ExitCode.configuration, "--config \(problem)")
        }
        for note in reportsNotes ? loaded.notes : [] { StandardError.report(Failure(ExitCode.holds, "\(note)")) }
        guard !loaded.problems.isEmpty else { return loaded }
        let areUsage = loaded.problems.allSatisfy(\.origin.isArgument)
        let code = areUsage ? ExitCode.usage : ExitCode.configuration
        for problem in loaded.problems { StandardError.report(Failure(code, "\(problem)")) }
        if loaded.furtherProblems > 0 { StandardError.report(Failure(code, "\(loaded.furtherProblems) further errors")) }
        throw SilentExit(code: code)
    }
}
