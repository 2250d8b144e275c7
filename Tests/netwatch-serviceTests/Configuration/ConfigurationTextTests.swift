import Expectations
import Testing

@testable import netwatch_service

@Suite struct ConfigurationTextTests {
    @Test func `the defaults are shown as such`() {
        let lines = ConfigurationText(nil).lines
        expectEqual(lines.first, "listen: 127.0.0.1:9130                    # default")
        #expect(lines.contains("  size: 2GiB                              # default"))
    }

    @Test func `each value has its source`() throws {
        let lines = ConfigurationText(
            try YAML.tree("targets:\n  - id: shop\n    target: \"a:1\"\n  - \"b:1\"", file: "/etc/n.yaml")
        ).lines
        expectEqual(
            lines.suffix(4),
            [
                "targets:", "  - id: shop                              # /etc/n.yaml:2",
                "    target: a:1                           # /etc/n.yaml:3",
                "  - b:1                                   # /etc/n.yaml:4",
            ])
    }

    @Test func `the values of header fields are not shown`() throws {
        let tree = try YAML.tree("targets: [{target: \"http://a\", http: {headers: {Authorization: secret}}}]")
        let text = ConfigurationText(tree).lines.joined(separator: "\n")
        #expect(!text.contains("secret"))
        #expect(text.contains("Authorization: \"(not shown)\""))
    }

    @Test(arguments: [
        "a:1", "", "null", "~", "- x", "a: b", "x #y", "a\nb", "\u{1B}[31m", "tab\there", "\"quoted\" \\", "ä", "10s", "*x", "&x",
        "a:",
    ])
    func `a shown scalar is read as the same text`(text: String) throws {
        let tree = try YAML.tree("state: \(ConfigurationText.scalar(text))")
        guard case .map(let members) = tree.content else { throw YAML.Problems(description: "\(tree)") }
        expectEqual(members[0].value.content, .scalar(text))
    }

    @Test func `the shown configuration is read as the same configuration`() throws {
        let text = """
            interval: 5s
            canary: {url: "http://c/204"}
            classes: {slow: {interval: 5m}}
            groups: [web, {name: db, folded: true}]
            maintenance: [{weekly: sunday 02:00, duration: 2h}]
            targets: ["a:1", {id: b, target: "https://b/", class: slow, expect: {status: 200, body: "^a: b # c$"}}]
            """
        let shown = ConfigurationText(try YAML.tree(text)).lines.joined(separator: "\n")
        var (first, second) = (try YAML.configuration(text), try YAML.configuration(shown))
        // The places differ.
        for index in first.targets.indices { first.targets[index].origin = .standard }
        for index in second.targets.indices { second.targets[index].origin = .standard }
        expectEqual(first, second)
    }

    @Test func `the example has no error, with and without its comments`() throws {
        try expectEqual(YAML.configuration(ConfigurationExample.text), Configuration())
        let lines = ConfigurationExample.text.split(separator: "\n", omittingEmptySubsequences: false)
        // A comment of settings has no space after '#', or several.
        let settings = lines.filter { $0 != "targets: []" }.map { line in
            line.hasPrefix("#") && (!line.hasPrefix("# ") || line.hasPrefix("#  ")) ? String(line.dropFirst()) : String(line)
        }
        let text = settings.joined(separator: "\n").replacing("  - 192.0.2.7:22", with: "targets:\n  - 192.0.2.7:22")
        let configuration = try YAML.configuration(text)
        expectEqual(configuration.targets.map(\.key), ["192.0.2.7:22", "shop"])
        expectEqual(configuration.retention, Retention())
    }
}
