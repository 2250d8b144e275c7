import Foundation
import Testing

/// A program that uses the library, in another package, compiles against a later version of the library that has more cases.
@Suite(.timeLimit(.minutes(5))) struct InterfaceGrowthTests {
    private static let client = """
        import Reachability

        func text(_ type: InterfaceType) -> String {
            switch type {
            case .wired: "cable"
            case .wifi: "Wi-Fi"
            case .cellular, .loopback, .tunnel, .bridge, .bluetooth, .usb, .virtual, .other: "other"
            DEFAULT: "something new"
            }
        }
        func text(_ status: ServerStatus) -> String {
            switch status {
            case .up, .degraded: "up"
            case .down(let cause), .unreachable(let cause): text(cause.code)
            case .unknown: "unknown"
            DEFAULT: "something new"
            }
        }
        func text(_ code: Cause.Code) -> String {
            switch code {
            case .noCarrier: "no cable"
            default: code.rawValue
            }
        }
        """

    /// The additions of a later version: a file, a text of it, and the text that replaces it.
    private static let additions = [
        ("Status/InterfaceType.swift", "    case other\n", "    case other\n    case satellite\n"),
        ("Status/ServerStatus.swift", "    case unreachable(Cause)\n", "    case unreachable(Cause)\n    case inMaintenance\n"),
        (
            "Status/Cause+Codes.swift", "    // MARK: link\n",
            "    public static let eclipse = Cause.Code(\"eclipse\")\n    // MARK: link\n"
        ),
    ]

    @Test func `a client compiles against the library with added cases`() throws {
        let bench = try Bench()
        let grown = try bench.buildGrownLibrary(Self.additions)
        #expect(try bench.compiles(Self.client.replacing("DEFAULT", with: "@unknown default"), with: nil))
        #expect(try bench.compiles(Self.client.replacing("DEFAULT", with: "@unknown default"), with: grown))
        // The added cases are there.
        #expect(try bench.compiles("import Reachability\nlet added: InterfaceType = .satellite", with: grown))
        #expect(try !bench.compiles("import Reachability\nlet added: InterfaceType = .satellite", with: nil))
    }

    @Test func `a client that lists all cases does not compile, before a case is added`() throws {
        let exhaustive = Self.client.split(separator: "\n").filter { !$0.contains("DEFAULT") }.joined(separator: "\n")
        #expect(try !Bench().compiles(exhaustive, with: nil))
    }

    /// A folder for compilations, removed with it.
    private final class Bench {
        private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        private let folder = FileManager.default.temporaryDirectory.appending(path: "netwatch-growth-\(UUID().uuidString)")
        private let flags: [String]

        init() throws {
            let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
            let modules = URL(fileURLWithPath: bundle).deletingLastPathComponent().appending(path: "Modules").path
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let (status, output) = try Bench.run([root.appending(path: "scripts/module-flags").path, modules])
            try #require(status == 0, "\(output)")
            flags = output.split(separator: "\n").map(String.init)
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        /// The module of a copy of Reachability with the additions. - Returns: its folder.
        func buildGrownLibrary(_ additions: [(file: String, text: String, replacement: String)]) throws -> URL {
            let copy = folder.appending(path: "Reachability")
            try FileManager.default.copyItem(at: root.appending(path: "Sources/Reachability"), to: copy)
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
            let (status, output) = try Bench.run(
                [
                    "swiftc", "-emit-module", "-module-name", "Reachability", "-package-name", package, "-swift-version", "6",
                    "-parse-as-library", "-Xfrontend", "-experimental-skip-all-function-bodies", "-emit-module-path",
                    modules.appending(path: "Reachability.swiftmodule").path,
                ] + features.flatMap { ["-enable-upcoming-feature", $0] } + flags + sources)
            try #require(status == 0, "\(output.suffix(2000))")
            return modules
        }

        func compiles(_ client: String, with library: URL?) throws -> Bool {
            let file = folder.appending(path: "client.swift")
            try Data(client.utf8).write(to: file)
            let first = library.map { ["-I", $0.path] } ?? []
            return try Bench.run(["swiftc", "-typecheck", "-swift-version", "6"] + first + flags + [file.path]).status == 0
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
}
