import Foundation
import HTTPSessionTestKit
import NetworkLab

/// A directory in which the built program runs, started as a shell does: `netwatch get` and `netwatch put`, which execute the
/// transfer program.
struct ProgramFolder {
    let scratch: ScratchDirectory
    /// The directory of the state that a later run continues.
    let state: ScratchDirectory

    init() throws { (scratch, state) = (try ScratchDirectory(), try ScratchDirectory()) }

    var path: String { scratch.path }
    func file(_ name: String) -> String { scratch.file(name) }

    func get(
        _ arguments: String..., environment: [String: String?] = [:], output: Program.Output = .pipe,
        errors: Program.Errors = .file
    ) throws -> Program {
        try run(["get"] + arguments, environment: environment, output: output, errors: errors)
    }

    /// Starts `netwatch` with these arguments, without a proxy from the environment.
    func run(
        _ arguments: [String], environment: [String: String?] = [:], input: Program.Input = .empty,
        output: Program.Output = .pipe, errors: Program.Errors = .file
    ) throws -> Program {
        var variables: [String: String?] = [
            "http_proxy": nil, "https_proxy": nil, "all_proxy": nil, "XDG_STATE_HOME": state.path,
        ]
        variables.merge(environment) { $1 }
        return try Program(
            [try Programs.netwatch] + arguments, environment: variables, directory: path, input: input, output: output,
            errors: errors
        )
    }

    func put(_ arguments: String...) throws -> Program { try run(["put"] + arguments) }

    /// Creates a file with `size` bytes of ``StubBody/patternBytes(from:count:)``.
    @discardableResult
    func make(_ name: String, size: Int) throws -> [UInt8] {
        let bytes = StubBody.patternBytes(from: 0, count: size)
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
        return bytes
    }

    func content(_ name: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: file(name))) }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
