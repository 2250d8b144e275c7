import Foundation
import HTTPSessionTestKit
import NetworkLab

/// A directory in which the built program runs, as a shell starts it: `netwatch get` and `netwatch put`, which become the program that
/// transfers.
struct ProgramFolder {
    let scratch: ScratchDirectory
    /// Where the program keeps what a later run goes on from.
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

    /// `netwatch` with these words behind it, and no proxy of the environment's.
    func run(
        _ words: [String], environment: [String: String?] = [:], input: Program.Input = .empty,
        output: Program.Output = .pipe, errors: Program.Errors = .file
    ) throws -> Program {
        var variables: [String: String?] = [
            "http_proxy": nil, "https_proxy": nil, "all_proxy": nil, "XDG_STATE_HOME": state.path,
        ]
        variables.merge(environment) { $1 }
        return try Program(
            [try Programs.netwatch] + words, environment: variables, directory: path, input: input, output: output, errors: errors
        )
    }

    func put(_ arguments: String...) throws -> Program { try run(["put"] + arguments) }

    /// Makes a file of so many bytes, as ``StubBody/patternBytes(from:count:)`` has them.
    @discardableResult
    func make(_ name: String, size: Int) throws -> [UInt8] {
        let bytes = StubBody.patternBytes(from: 0, count: size)
        try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
        return bytes
    }

    func content(_ name: String) -> Data? { try? Data(contentsOf: URL(fileURLWithPath: file(name))) }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
