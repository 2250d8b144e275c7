"""Tests of scripts/rules: for each rule, texts that break it, with the lines of the findings, and texts that do not."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(name):
    """A script of this folder's parent as a module."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


rules = script("rules")
PURE, LIBRARY, TEST = "Sources/Pacing/A.swift", "Sources/EventLoop/A.swift", "Tests/KernelTests/A.swift"
KEYS = "Sources/HTTPSession/Curl/A.swift"
ARRAY = "let a = [UInt8](unsafeUninitializedCapacity: count) { _, _ in }"

# A rule, a path, a text, and the lines of the findings.
EXAMPLES = [
    ("import_walls", "Sources/Reachability/Probe/Connector.swift", "\nimport CLibnl", [2]),
    ("import_walls", "Sources/Reachability/Kernel/NetlinkSocket.swift", "import CLibnl", []),
    ("import_walls", "Sources/Reachability/NetlinkSocket.swift", "import CLibnl", [1]),
    ("import_walls", "Sources/Reachability/Path/Route.swift", "import CLinux", [1]),
    ("import_walls", "Sources/Reachability/Verdict/Verdict.swift", "internal import Glibc", [1]),
    ("import_walls", "Sources/Reachability/Interfaces/Classifier.swift", "import CLinux", [1]),
    ("import_walls", "Sources/Reachability/Interfaces/InterfaceEvidenceReader.swift", "import CLinux", []),
    ("import_walls", PURE, "@preconcurrency import Glibc", [1]),
    ("import_walls", "Sources/Records/Encoding/Record.swift", "import Records; import Dispatch", [1]),
    ("import_walls", "Sources/Records/Encoding/Record.swift", "import FoundationEssentials", []),
    ("import_walls", "Sources/netwatch/Commands/Watch.swift", "import Glibc", []),
    ("import_walls", "Sources/netwatch/Commands/Get.swift", "import HTTPSession", [1]),
    ("import_walls", "Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSession", []),
    ("import_walls", "Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSessionFoundation", [1]),
    ("import_walls", "Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSessionJournal", [1]),
    ("import_walls", "Sources/HTTPSessionFoundation/XMLScreening.swift", "import FoundationXML", []),
    ("import_walls", "Sources/HTTPSessionTestKit/ServerTLS.swift", "import COpenSSL", []),
    ("import_walls", "Sources/HTTPSessionJournal/Store/Journal.swift", "internal import GRDB", []),
    ("import_walls", "Sources/HTTPSessionJournal/Coordinator/TaskCoordinator.swift", "internal import GRDB", [1]),
    ("import_walls", "Sources/netwatch-service/History/Store/Rows.swift", "import GRDB", []),
    ("import_walls", "Sources/netwatch-service/Pages/Page.swift", "import NIOCore", [1]),
    ("import_walls", "Sources/Reachability/PathMonitor.swift", "public import struct Foundation.Data", [1]),
    ("import_walls", "Sources/Reachability/PathMonitor.swift", "import FoundationNetworking // for a while", [1]),
    ("import_walls", "Sources/Reachability/PathMonitor.swift", "// import Foundation\nlet a = \"import Foundation\"", []),
    ("import_walls", TEST, "import Foundation", []),
    ("pure_folders", PURE, "let now =\n    Date()", [2]),
    ("pure_folders", PURE, "let now = ContinuousClock.now", [1]),
    ("pure_folders", PURE, 'let text = "\\(Date())"', [1]),
    ("pure_folders", PURE, "// never Date()", []),
    ("pure_folders", "Sources/Reachability/Path/Route.swift", "FileManager.default.contents(atPath: path)", [1]),
    ("pure_folders", "Sources/Reachability/Loop/MonitorLoop.swift", "let now = ContinuousClock.now", []),
    ("unfinished_work", "docs/a.md", "fine\nTODO: later\nFIXME\n<!--XXX-->", [2, 3, 4]),
    ("unfinished_work", "docs/a.md", "TODO (#12): later\nTODOList and mktemp /tmp/a.XXXXXX", []),
    ("reasons", LIBRARY, "import Glibc\nfinal class Loop: @unchecked Sendable {", [2]),
    ("reasons", LIBRARY, "// Only its thread touches it.\nfinal class Loop: @unchecked Sendable {", []),
    ("reasons", LIBRARY, "nonisolated(unsafe) var a = 1  // under the lock", []),
    ("reasons", LIBRARY, "@exclusivity(unchecked) var a = 1\n@exclusivity(unchecked) var b = 1", [1, 2]),
    ("reasons", LIBRARY, "// Both return at once.\n@exclusivity(unchecked) var a = 1\n@exclusivity(unchecked) var b = 1", []),
    ("reasons", LIBRARY, "@preconcurrency import Glibc", [1]),
    ("crashes", PURE, 'default: fatalError("no")', [1]),
    ("crashes", PURE, 'default: preconditionFailure("\\(state)")  // no fatalError()', []),
    ("skips", TEST, "@Suite(.enabled(if: isRoot)) struct A {}", [1]),
    ("skips", TEST, '@Test(.disabled(if: true, "no")) func a()\n@Test(.disabled()) func b()', [1, 2]),
    ("skips", TEST, "@Suite(.requiresNamespaces) struct A {}", []),
    ("skips", "Tests/Expectations/Conditions.swift", ".enabled(if: isRoot)", []),
    ("names", "Sources/Reachability/Helpers/Parse.swift", "", [1]),
    ("names", "Sources/Reachability/String+Utils.swift", "", [1]),
    ("names", "Sources/Reachability/CommonName.swift", "", []),
    ("foreign_paths", "docs/a.md", 'see /wor' 'k/facts.md\nsee net/work/facts, .build/work/a\nin "/roo' 't/.cache"', [1, 3]),
    ("locked_closures", LIBRARY, "a = Locked<(@Sendable () -> Void)?>(nil)\nb = Locked<Int>(0)\n// Locked<() -> Void>", [1]),
    ("exact_keys", KEYS, "var files: [String: Int] = [:]\nvar hosts: Set<String> = []", [1, 2]),
    ("exact_keys", KEYS, "let objects = WeakCache<String, Object>()\nlet a: Dictionary<String, Int>", [1, 2]),
    ("exact_keys", KEYS, "var files: [ExactString: Int] = [:]\nlet names: [String] = a ? [String]() : [String::x]\n// [String: Int]", []),
    ("exact_keys", KEYS, "func path(_ environment: [String: String]) -> String\nlet environment: [String: String]", []),
    ("exact_keys", "Sources/HTTPSessionJournal/Coordinator/TaskCoordinator.swift", "var queued: Set<String> = []", []),
    ("exact_keys", LIBRARY, "var files: [String: Int] = [:]", []),
    ("empty_storage", LIBRARY, "var x = 1\n" + ARRAY, [2]),
    ("empty_storage", LIBRARY, "guard count > 0 else { return [] }\n" + ARRAY, []),
    ("empty_storage", LIBRARY, "String(unsafeUninitializedCapacity: 24) { _ in 0 }", []),
    ("contracts", LIBRARY, "/// By the table of the contract.\n// The reason (contract, `resync`).\n/// The\n/// contract's names.", [1, 2, 4]),
    ("contracts", TEST, "@Test func `every key of the contract`() {}", [1]),
    ("contracts", LIBRARY, "// The contract of `Hashable` requires this; a contract, contracts, and contracting do not.", []),
    ("contracts", "docs/a.md", "the contract", []),
]

ORDER = ("docs/architecture.md", "House: Bottom Top\n## Folders, from the top\n```\nHouse: Top Bottom\n```\n## Next\nHouse: Bottom Top")
ROOF = ("Sources/House/Top/Roof.swift", "struct Roof { let wall: Wall; enum Kind {} }")


class Rules(unittest.TestCase):
    def test_examples_of_every_rule(self):
        for name, path, text, lines in EXAMPLES:
            with self.subTest(rule=name, path=path, text=text):
                file = rules.File(path, text)
                self.assertEqual([file.line(offset) for offset, _ in getattr(rules, name)(file)], lines)
        for rule in rules.RULES:
            self.assertTrue(any(name == rule.__name__ and lines for name, _, _, lines in EXAMPLES), f"nothing breaks {rule.__name__}")

    def found(self, rule, *files):
        return sorted(f"{path}:{line}: {what}" for path, line, what in rule([rules.File(*file) for file in files]))

    def test_a_key_compares_the_bytes_of_its_strings(self):
        def found(text, path=KEYS):
            return self.found(rules.exact_members, (path, text), (KEYS, "var a: [Server.Key: Int] = [:]\nvar b: Set<Name> = []"))

        key = "struct Key: Hashable, Sendable {\n    var port: Int32\n    let address: String\n    var zone: String?\n}"
        self.assertEqual(
            found(f"struct Server {{\n{key}\n}}"),
            [f"{KEYS}:{line}: Key is a key, and compares '{name}' by canonical equivalence: use @ExactString"
             for line, name in [(4, "address"), (5, "zone")]])
        self.assertEqual(len(found("struct Name: Hashable {\n    let text: String\n}")), 1)
        for text in [
            key.replace("let address", "@ExactString var address").replace("var zone: String?", "var zone: ExactString?"),
            key.replace("    var port", "    static func == (a: Key, b: Key) -> Bool { true }\n    var port"),
            key.replace("Key", "Value"), key.replace(": Hashable", ": Sendable"),
            "struct Key: Hashable {\n    var text: Int {\n        let part: String\n    }\n    func f() {\n        var a: String\n    }\n}",
        ]:
            self.assertEqual(found(text), [], text)
        self.assertEqual(found(key, LIBRARY), [])

    def order(self, text, path="Sources/House/Bottom/Wall.swift"):
        return self.found(rules.folder_order, ORDER, ROOF, (path, text))

    def test_a_file_names_types_of_its_folder_and_of_folders_further_down(self):
        self.assertEqual(self.order("struct Wall {}"), [])
        self.assertEqual(
            self.order("struct Wall {\n  var roof: Roof?\n  var another: Roof?\n}"),
            ["Sources/House/Bottom/Wall.swift:2: Bottom names Roof of Top, which stands above it"])
        for text in ["extension Roof {}", 'let text = "a \\(Roof.self) is here"', 'let a = "\\(f("("))"\nlet b = Roof()']:
            self.assertEqual(len(self.order(text)), 1, text)

    def test_comments_strings_members_and_nested_types_are_no_uses_of_a_type(self):
        for text in [
            "// Roof\n/* Roof\nRoof */ let a = 1", 'let a = "Roof \\" Roof"\nlet b = """\n  Roof "Roof"\n  """', 'let a = #"Roof " Roof"#',
            "let a = Wall.Roof(1)", "struct Wall { struct Roof {}; let roof: Roof }", "func `Roof is here`() {}",
            'let a = """\n  \\(f("""\n  Roof)\n  """)) Roof\n  """',
        ]:
            self.assertEqual(self.order(text), [], text)

    def test_every_folder_has_one_place_in_the_order(self):
        self.assertEqual(self.order("struct Wall {}", "Sources/House/Cellar/Wall.swift"), [
            "docs/architecture.md:1: House/Bottom is in the order of folders, and does not exist",
            "docs/architecture.md:1: House/Cellar has no place in the order of folders",
        ])

    def test_tests_that_the_comparison_names_exist(self):
        table = "| a | shown by, or why |\n|---|---|\n| 1 | `it works`, `itWorks` |\n| 2 | `absent`, `by name`, `next line` |\n\n| b |\n| `no test` |"
        tests = '@Test func `it works`() {}\n@Test("by name") func c() {}\n@Test(\n  "next line", arguments: [1])\nfunc itWorks(_ a: Int) {}'
        self.assertEqual(
            self.found(rules.named_tests, ("docs/compared.md", table), ("Tests/A/B.swift", tests)),
            ["docs/compared.md:4: there is no test `absent`"])

    def test_documented_code_is_part_of_a_program_that_the_tests_run(self):
        readme = "```swift\nlet a = 1  // one\n\nlet b = 2\n```\n\n```swift\nlet c = 3\n```\n"
        program = "func main() {\n  let a = 1\n  let c = 3 // three\n}"
        self.assertEqual(
            self.found(rules.documented_examples, ("README.md", readme), ("Examples/A/A.swift", program)),
            ["README.md:4: no program in Examples has this paragraph"])

    def test_paths_that_the_rules_name_exist(self):
        files = list(rules.repository_files(ROOT))
        without = [file for file in files if file.path != rules.SKIPS]
        found = {what for _, _, what in rules.known_paths(without)} - {what for _, _, what in rules.known_paths(files)}
        self.assertEqual(found, {f"{rules.SKIPS} does not exist"})

    def test_a_tracked_file_that_gitignore_names_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in [".gitignore", "Package.resolved"]:
                pathlib.Path(folder, name).write_text("Package.resolved\n")
            subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
            subprocess.run(["git", "add", "-f", "."], cwd=folder, check=True)
            self.assertEqual([path for path, _, _ in rules.ignored_files(folder)], ["Package.resolved"])

    def test_swift_format_demands_documentation_of_public_declarations(self):
        lint = subprocess.run(
            ["swift", "format", "lint", "--strict", "--configuration", ROOT / ".swift-format"],
            input="public struct Path {}\n\n/// Known.\npublic struct Route {}\n", stderr=subprocess.PIPE, text=True)
        self.assertEqual((lint.returncode, lint.stderr.count("[AllPublicDeclarationsHaveDocumentation]"), "'Path'" in lint.stderr), (1, 1, True))


if __name__ == "__main__":
    unittest.main()
