import ArgumentParser
import Console
import Expectations
import Foundation
import Testing

@testable import netwatch_transfer

/// The section of docs/command-line.md about `beat`: its options exist, and its examples are valid command lines.
@Suite struct BeatDocumentTests {
    private let section: String

    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/command-line.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let parts = text.components(separatedBy: "\n## beat\n")
        section = try #require(parts.count == 2 ? parts[1].components(separatedBy: "\n## ").first : nil)
    }

    private func options(in text: String) -> Set<String> {
        Set(text.matches(of: /--([a-z][a-z-]+)/).map { String($0.1) }).subtracting(["all"])
    }

    @Test func `the section has every option of beat, and no other`() {
        let help = TransferCommands.helpMessage(for: BeatCommand.self, columns: 200)
        let listed = help.components(separatedBy: "\nOPTIONS:\n").last ?? ""
        expectEqual(options(in: section), options(in: listed).subtracting(["help", "version"]))
    }

    @Test func `the examples are valid, and run the command after the two hyphens`() throws {
        let lines = section.replacing("\\\n", with: "").split(separator: "\n").filter { !$0.contains("COMMAND") }
        let examples = lines.compactMap { line in line.firstRange(of: "netwatch beat ").map { line[$0.lowerBound...] } }
        expectEqual(examples.count, 3)
        for example in examples {
            let words = example.split(separator: " ").dropFirst().map(String.init)
            let (arguments, command) = try CommandArguments.split(words, of: "beat")
            let parsed = try #require(try TransferCommands.parseAsRoot(arguments) as? BeatCommand)
            let plan = try BeatPlan(
                name: parsed.name, service: (parsed.service, nil), options: .init(dropsOutput: parsed.noOutput), command: command)
            expectEqual(plan.name, "backup")
            #expect(command.first?.hasSuffix("/backup") == true && parsed.tokenFile != nil)
        }
    }
}
