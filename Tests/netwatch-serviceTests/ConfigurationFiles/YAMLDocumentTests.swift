import Expectations
import Testing

@testable import netwatch_service

@Suite struct YAMLDocumentTests {
    @Test(arguments: [
        ("a: [", "f.yaml:2:1: not valid YAML: did not find expected node content (while parsing a flow node)"),
        ("a: 1\n  b: 2", "f.yaml:2:4: not valid YAML: mapping values are not allowed in this context"),
        ("a:\n\t- b", "f.yaml:2:1: a tab cannot indent a line; write spaces"),
        ("a: *x", "f.yaml:1:4: not valid YAML: found undefined alias"),
        ("a: 1\nb: 2\na: 3", "f.yaml:1:1: set twice in one map: 'a'"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: not valid YAML: but found another document"),
        ("ok: 1\nb: \u{1}", "f.yaml:2:4: not valid YAML: control characters are not allowed"),
        ("[a]: 1", "f.yaml:1:1: a key must be a single value"),
        ("x: &d {a: 1}\ny: {<<: *d}", "f.yaml:2:5: merge keys ('<<') are not supported; use a class"),
    ])
    func `a document that is not valid is an error with its place`(text: String, problem: String) {
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree(text) }
        expectEqual(error?.description.hasPrefix(problem), true, "\(String(describing: error))")
    }

    @Test func `an alias is a copy of its node`() throws {
        let tree = try YAML.tree("a: &x [1, 2]\nb: *x")
        guard case .map(let members) = tree.content, case .list(let list) = members[1].value.content else {
            throw YAML.Problems(description: "\(tree)")
        }
        expectEqual(list.map(\.content), [.scalar("1"), .scalar("2")])
    }

    @Test func `nested aliases that add more than 10,000 values are refused`() {
        let levels = (1...40).map { "l\($0): &l\($0) [*l\($0 - 1), *l\($0 - 1)]" }
        let error = #expect(throws: ConfigurationProblem.self) {
            try YAML.tree("l0: &l0 [x, x]\n" + levels.joined(separator: "\n"))
        }
        expectEqual(error?.reason, "its aliases add more than 10000 values")
    }

    @Test(arguments: ["? *l\n: 1", "*l : 1", "{*l : 1}", "[*l]: 1", "{*l}", "{[*l, *l]}", "{{*l}: 1}", "? [*l]"])
    func `keys of nested aliases are refused`(key: String) {
        let levels = (1...12).map { "- &l\($0) [*l\($0 - 1), *l\($0 - 1)]" }
        let text = "- &l0 [x, x]\n\(levels.joined(separator: "\n"))\n- &l [x]\n- \(key.replacing("\n", with: "\n  "))"
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree(text) }
        expectEqual(error?.reason, "its aliases add more than 10000 values", "\(String(describing: error))")
        let small = #expect(throws: ConfigurationProblem.self) {
            try YAML.tree("- &l [x]\n- \(key.replacing("\n", with: "\n  "))")
        }
        expectEqual(small?.reason, "a key must be a single value, and no alias", "\(String(describing: small))")
    }

    @Test func `the lists of aliases count as nested`() throws {
        // Each line is one list deep, and its alias has all lists of the lines before it.
        func document(levels: Int) -> String {
            "l1: &l1 [x]\n" + (2...levels).map { "l\($0): &l\($0) [*l\($0 - 1)]" }.joined(separator: "\n")
        }
        _ = try YAML.tree(document(levels: 99))
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree(document(levels: 100)) }
        expectEqual(error?.description, "f.yaml:100:14: its lists and maps nest deeper than 100 levels")
    }

    @Test func `a key of nested maps is refused at its first map`() {
        let text = "a: " + String(repeating: "{", count: 50) + "x" + String(repeating: "}", count: 50)
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree(text) }
        expectEqual(error?.description, "f.yaml:1:5: a key must be a single value, and no alias")
    }

    @Test func `a key may be repeated in another map, and keys that are set twice are named`() throws {
        _ = try YAML.tree("a: {x: 1}\nb: {x: 1}")
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree("c: 1\na: 1\na: 2\nc: 3\n\"a\": 4") }
        expectEqual(error?.description, "f.yaml:2:1: set twice in one map: 'a', 'c', 'a'")
    }

    @Test func `an anchor inside its own value is not known`() {
        let error = #expect(throws: ConfigurationProblem.self) { try YAML.tree("a: &x [*x]") }
        expectEqual(error?.description, "f.yaml:1:8: not valid YAML: found undefined alias")
    }

    @Test func `anchors of keys and of redefined names are copied`() throws {
        let tree = try YAML.tree("&k key: &v 1\nb: [*k, *v]\nc: &v 2\nd: *v")
        guard case .map(let members) = tree.content else { throw YAML.Problems(description: "\(tree)") }
        expectEqual(members[1].value.elements.map(\.content), [.scalar("key"), .scalar("1")])
        expectEqual(members[3].value.content, .scalar("2"))
    }

    @Test func `a map keeps the place of its start`() throws {
        let tree = try YAML.tree("a:\n  b: 1\n  c: 2")
        guard case .map(let members) = tree.content else { throw YAML.Problems(description: "\(tree)") }
        expectEqual(members[0].value.origin, .file("f.yaml", line: 2, column: 3))
    }

    @Test(arguments: ["[", "{a: ", "- "])
    func `a document of 1 MiB that nests without end is an error`(opening: String) {
        #expect(throws: ConfigurationProblem.self) {
            try YAML.tree("a: " + String(repeating: opening, count: (1 << 20) / opening.utf8.count))
        }
    }

    @Test(arguments: ["", "   ", "# comment", "~", "null", "a:", "a: ~"])
    func `empty values are empty`(text: String) throws {
        let tree = try YAML.tree(text)
        if case .map(let members) = tree.content {
            expectEqual(members.map(\.value.content), [.empty])
        } else {
            expectEqual(tree.content, .empty)
        }
    }

    @Test func `a quoted null is a text`() throws {
        try expectEqual(YAML.tree("'null'").content, .scalar("null"))
        try expectEqual(YAML.tree("\"\"").content, .scalar(""))
    }
}
