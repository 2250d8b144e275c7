import Foundation
import Testing

/// Compiles programs of other packages against the libraries of this build, in a folder that is removed with this object.
final class ClientCompiler {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private let folder = FileManager.default.temporaryDirectory.appending(path: "netwatch-growth-\(UUID().uuidString)")
    private let flags: [String]

    init() throws {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let modules = URL(fileURLWithPath: bundle).deletingLastPathComponent().appending(path: "Modules").path
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let (status, output) = try Self.run([root.appending(path: "scripts/module-flags").path, modules])
        try #require(status == 0, "\(output)")
        flags = output.split(separator: "\n").map(String.init)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Builds the module of a copy of a library with the additions. Bodies of functions are not compiled, and all files together,
    /// which takes a second. - Returns: the folder of the module.
    func buildGrown(_ library: String, _ additions: [(file: String, text: String, replacement: String)]) throws -> URL {
        let copy = folder.appending(path: library)
        try FileManager.default.copyItem(at: root.appending(path: "Sources/\(library)"), to: copy)
        for (file, text, replacement) in additions {
            let url = copy.appending(path: file)
            let source = try String(contentsOf: url, encoding: .utf8)
            try #require(source.contains(text), "\(file)")
            try Data(source.replacing(text, with: replacement, maxReplacements: 1).utf8).write(to: url)
        }
        let files = FileManager.default.enumerator(atPath: copy.path)?.compactMap { $0 as? String } ?? []
        let sources = files.filter { $0.hasSuffix(".swift") }.map { copy.appending(path: $0).path }
        let modules = folder.appending(path: "Modules")
        try FileManager.default.createDirectory(at: modules, withIntermediateDirectories: true)
        // The package manager names a package after its folder.
        let package = root.lastPathComponent.lowercased()
        let features = ["ExistentialAny", "MemberImportVisibility", "InternalImportsByDefault"]
        let (status, output) = try Self.run(
            [
                "swiftc", "-emit-module", "-whole-module-optimization", "-module-name", library, "-package-name", package,
                "-swift-version", "6", "-parse-as-library", "-Xfrontend", "-experimental-skip-all-function-bodies",
                "-emit-module-path", modules.appending(path: "\(library).swiftmodule").path,
            ] + features.flatMap { ["-enable-upcoming-feature", $0] } + flags + sources)
        try #require(status == 0, "\(output.suffix(2000))")
        return modules
    }

    func compiles(_ client: String, with library: URL?) throws -> Bool { try check(client, with: library).status == 0 }

    /// The compiler's errors in a program, by line.
    func errors(in client: String) throws -> [Int: String] {
        let lines = try check(client, with: nil).output.split(separator: "\n")
        return lines.reduce(into: [:]) { errors, line in
            guard let match = line.firstMatch(of: /client\.swift:(\d+):\d+: error: (.*)/) else { return }
            errors[Int(match.1) ?? 0, default: ""] += match.2
        }
    }

    private func check(_ client: String, with library: URL?) throws -> (status: Int32, output: String) {
        let file = folder.appending(path: "client.swift")
        try Data(client.utf8).write(to: file)
        let first = library.map { ["-I", $0.path] } ?? []
        return try Self.run(["swiftc", "-typecheck", "-swift-version", "6"] + first + flags + [file.path])
    }

    private static func run(_ command: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let pipe = Pipe()
        (process.standardOutput, process.standardError) = (pipe, pipe)
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
