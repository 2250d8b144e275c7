import Expectations
import Foundation
import Reachability
import Testing

@testable import netwatch_service

/// docs/service.md has what the tables of keys say. If a test fails, copy the text that it expects into the document.
@Suite struct ConfigurationDocumentTests {
    private let lines: [String]

    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/service.md")
        lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
    }

    @Test func `docs/service.md has the row of each general key, with its default`() {
        let rows = Configuration.entries.map { "| `\($0.name)` | \(Self.text(of: $0)) | \(Self.standard(of: $0)) |" }
        expectEqual(table(after: "| key | value | default |"), rows.joined(separator: "\n"))
    }

    @Test func `docs/service.md has the row of each key of a target`() {
        let rows = ConfiguredTarget.entries.filter { !$0.isShared }.map { "| `\($0.name)` | \(Self.text(of: $0)) |" }
        let names = ConfiguredTarget.entries.filter(\.isShared).map { "`\($0.name)`" }.joined(separator: ", ")
        let shared = "| \(names) | as above, for this target. Each replaces that of its class, which replaces the general one |"
        expectEqual(table(after: "| key | value |"), (rows + [shared]).joined(separator: "\n"))
    }

    @Test func `docs/service.md has the options of keys, and the keys that need a restart`() {
        let options = Configuration.entries.filter { $0.option != nil }.map { "`--\($0.optionName)`" }.joined(separator: ", ")
        #expect(lines.contains("| command line | \(options) |"), "\(options)")
        let restarts = Configuration.entries.filter(\.needsRestart).map { "`\($0.name)`" }
        let names = "\(restarts.dropLast().joined(separator: ", ")) and \(restarts.last ?? "")"
        #expect(lines.joined(separator: " ").contains("New values of \(names) need a restart"), "\(names)")
    }

    @Test func `docs/command-line.md has a row for the form of each scheme`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/command-line.md")
        let rows = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        for form in Endpoint.Scheme.allCases.map(\.form) {
            let text = form.text.split(separator: ", ").map { "`\($0)`" }.joined(separator: ", ")
            #expect(rows.contains { $0.hasPrefix("| \(text)") }, "\(text)")
        }
    }

    /// The rows of the table with a heading.
    private func table(after heading: String) -> String {
        lines.drop { $0 != heading }.dropFirst(2).prefix { !$0.isEmpty }.joined(separator: "\n")
    }

    /// What a row says of a key, and of the keys in its maps.
    private static func text(of entry: ConfigurationEntry) -> String {
        let members = entry.members.map { member in
            let text = member.isShared ? "" : Self.text(of: member)
            return "`\(member.name)`" + (text.isEmpty ? "" : " (\(text))")
        }
        let text = [entry.help, entry.limits ?? ""].filter { !$0.isEmpty }.joined(separator: ", ") + entry.details
        return text + (text.isEmpty || members.isEmpty ? "" : ". Keys: ") + members.joined(separator: ", ")
    }

    private static func standard(of entry: ConfigurationEntry) -> String {
        if let standard = entry.documentedStandard { return standard }
        let standards = ([entry] + entry.members).compactMap(\.standard)
        return standards.isEmpty ? "none" : standards.map { "`\($0)`" }.joined(separator: ", ")
    }
}
