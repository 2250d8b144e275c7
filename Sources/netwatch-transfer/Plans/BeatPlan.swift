import Console

/// The plan of `beat`: the heartbeat, its service, and what is reported, made before anything is read or run.
struct BeatPlan: Hashable, Sendable {
    enum Action: Hashable, Sendable {
        /// Runs a command, and reports its start and its exit code.
        case run([String], keepsOutput: Bool)
        /// Reports an event.
        case report(HeartbeatReport.Outcome, Body)
    }

    /// The body of a report without a command.
    enum Body: Hashable, Sendable {
        case text(String)
        /// The end of what standard input has.
        case standardInput
    }

    /// The options that say what is reported.
    struct Options: Hashable, Sendable {
        var start = false
        var fail = false
        var code: Int?
        var message: String?
        var readsInput = false
        var dropsOutput = false
    }

    var name: String
    var service: HeartbeatService
    var action: Action

    /// Checks the arguments. `service` has the value of `--service` and that of the variable `NETWATCH_SERVICE`, `command` the words after `--`.
    ///
    /// - Throws: ``Failure`` with code 64.
    init(
        name: String?, service: (option: String?, variable: String?), options: Options, command: [String]
    ) throws(Failure) {
        guard let name else { throw .usage("beat", "the name is missing; write: netwatch beat NAME [-- COMMAND]") }
        guard HeartbeatReport.isName(name) else {
            throw .usage(
                "NAME '\(name)'",
                "write 1 to 64 letters, digits, dots, underscores or hyphens, no dot first, and not digits alone")
        }
        self.name = name
        if let option = service.option {
            self.service = try HeartbeatService(option, place: "--service")
        } else {
            // A variable that is empty counts as none.
            let variable = service.variable.flatMap { $0.isEmpty ? nil : $0 }
            self.service = try HeartbeatService(variable, place: "NETWATCH_SERVICE")
        }
        action = try command.isEmpty ? Self.report(options) : Self.run(command, options)
    }

    private static func run(_ command: [String], _ options: Options) throws(Failure) -> Action {
        let excluded = [
            (options.start, "--start"), (options.fail, "--fail"), (options.code != nil, "--code"),
            (options.message != nil, "--message"), (options.readsInput, "--stdin"),
        ]
        if let (_, option) = excluded.first(where: \.0) {
            throw .usage(option, "it excludes a command, whose exit code and output are reported")
        }
        return .run(command, keepsOutput: !options.dropsOutput)
    }

    private static func report(_ options: Options) throws(Failure) -> Action {
        if options.dropsOutput { throw .usage("--no-output", "it needs a command; write -- COMMAND") }
        let chosen = [(options.start, "--start"), (options.fail, "--fail"), (options.code != nil, "--code")].filter(\.0).map(\.1)
        guard chosen.count <= 1 else { throw .usage(chosen.joined(separator: " "), "they exclude each other") }
        if options.message != nil, options.readsInput { throw .usage("--message --stdin", "they exclude each other") }
        var outcome = HeartbeatReport.Outcome.success
        if options.start { outcome = .start }
        if options.fail { outcome = .fail }
        if let code = options.code {
            guard HeartbeatReport.Outcome.codes.contains(code) else { throw .usage("--code \(code)", "an exit code is 0 to 255") }
            outcome = .code(code)
        }
        return .report(outcome, options.readsInput ? .standardInput : .text(OutputTail.limited(options.message ?? "")))
    }
}
