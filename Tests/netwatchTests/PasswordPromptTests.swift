import Expectations
import NetworkLab
import Testing

/// The question for the password of `--user NAME`, on a controlling terminal of the program's own.
@Suite(.timeLimit(.minutes(5))) struct PasswordPromptTests {
    /// Nothing listens on this port, so the command ends with 1 once it has a password.
    private static let status = ["status", "--user", "me", "http://127.0.0.1:1/"]
    private static let get = ["get", "--timeout", "100ms", "-o", "/dev/null", "--user", "me", "http://127.0.0.1:1/"]

    /// Starts a script whose `"$@"` is the program. The shell has job control (-m) and reports each exit code.
    private func start(_ script: String, _ arguments: [String]) throws -> Program {
        let command = ["setsid", "--ctty", "--wait", "sh", "-m", "-c", script, "sh", try Programs.netwatch]
        return try Program(
            // Sanitizers leave crashes to Swift's backtracer, which asks a question on a terminal.
            command + arguments, environment: ["TERM": "dumb", "SWIFT_BACKTRACE": "enable=no"], input: .terminal,
            output: .terminal, errors: .output)
    }

    /// A script that reports whether the terminal shows what is typed.
    private static let report = #"echo "code $?"; stty -a | grep -qw -e -echo && echo hidden || echo shown"#

    private func rest(_ program: Program) throws -> [String] {
        try program.remainingLines().map { $0.filter { $0 != "\r" } }.filter { !$0.isEmpty }
    }

    @Test(arguments: [status, get]) func `Ctrl-C at the prompt ends the command with 130, and the terminal shows input again`(
        arguments: [String]
    ) throws {
        let program = try start(#"trap : INT; "$@"; \#(Self.report)"#, arguments)
        try program.read(upTo: "password of me: ")
        try program.typeIn("half\u{3}")
        try expectEqual(rest(program), ["code 130", "shown"])
    }

    @Test func `Ctrl-Z at the prompt stops the command, and fg asks again`() throws {
        let program = try start(#""$@"; \#(Self.report); fg >/dev/null; \#(Self.report)"#, Self.status)
        try program.read(upTo: "password of me: ")
        try program.typeIn("half\u{1a}")
        try program.read(upTo: "code 148\r\nshown\r\n")
        try program.read(upTo: "password of me: ")
        try program.typeIn("s3cret\n")
        let lines = try rest(program)
        expectEqual(Array(lines.suffix(2)), ["code 1", "shown"])
        #expect(!lines.contains { $0.contains("s3cret") })
    }

    @Test(arguments: ["\u{4}", "half\u{4}\u{4}"]) func `Ctrl-D at the prompt is an error, not a password`(keys: String) throws {
        let program = try start(#""$@"; \#(Self.report)"#, Self.status)
        try program.read(upTo: "password of me: ")
        try program.typeIn(keys)
        try expectEqual(rest(program), ["netwatch: --user me: no password was read", "code 64", "shown"])
    }

    @Test func `Ctrl-backslash at the prompt ends the command by SIGQUIT, and the terminal shows input again`() throws {
        let program = try start(#""$@"; \#(Self.report)"#, Self.status)
        try program.read(upTo: "password of me: ")
        try program.typeIn("half\u{1c}")
        let lines = try rest(program)
        expectEqual(Array(lines.suffix(2)), ["code 131", "shown"], "\(lines)")
    }

    @Test func `an empty line is an empty password`() throws {
        let program = try start(#""$@"; \#(Self.report)"#, Self.status)
        try program.read(upTo: "password of me: ")
        try program.typeIn("\n")
        try expectEqual(Array(rest(program).suffix(2)), ["code 1", "shown"])
    }
}
