import Foundation
import Testing

struct TidyTests {
    @Test("the repository keeps its rules")
    func repository() async throws {
        let files = try repositoryFiles()
        try #require(files.contains { $0.path == "Package.swift" } && files.contains { $0.path.hasPrefix("Sources/") })
        let architecture = try #require(files.first { $0.path == FolderOrder.document })
        let compared = try #require(files.first { $0.path == NamedTests.document })
        let findings = await broken(files) + FolderOrder(architecture).findings(files) + NamedTests.findings(compared, in: files)
        for finding in findings { print(finding) }
        let count = findings.count
        #expect(count == 0, "see the lines above")
    }

    /// The findings in files, which as many tasks examine as there are processors.
    private func broken(_ files: [SourceFile]) async -> [Finding] {
        let share = files.count / max(1, ProcessInfo.processInfo.activeProcessorCount) + 1
        return await withTaskGroup(of: [Finding].self) { group in
            for start in stride(from: 0, to: files.count, by: share) {
                let part = files[start..<min(start + share, files.count)]
                group.addTask { part.flatMap { file in Rules.all.flatMap { $0(file) } } }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test("every exception to the rules names an existing file")
    func exceptions() throws {
        let paths = Set(try repositoryFiles().map(\.path))
        for path in Rules.edges.union(Rules.longFiles.keys) { #expect(paths.contains(path)) }
    }
}

struct NamedTestsTests {
    @Test func `a test that a table names and that does not exist is found`() {
        let document = SourceFile(
            NamedTests.document,
            """
            | capability | shown by, or why |
            |---|---|
            | one | `it works` and `itWorks` |
            | two | `it does not exist` · `by display name` · `by the next line` · `absent` |

            | another | table |
            | three | `not a test` |
            """)
        let tests = SourceFile(
            "Tests/A/B.swift",
            """
            @Test func `it works`() {}
            @Test("by display name") func c() {}
            @Test(
                "by the next line", arguments: [1])
            func itWorks(_ number: Int) {}
            """)
        let findings = NamedTests.findings(document, in: [tests])
        #expect(findings.map(\.line) == [4, 4])
        #expect(findings.map(\.what) == ["there is no test `it does not exist`", "there is no test `absent`"])
    }
}

struct RuleTests {
    @Test(
        "a C library, Foundation or a heavy product is imported only in its folders",
        arguments: [
            ("Sources/Reachability/Probe/Connector.swift", "import CLibnl", false),
            ("Sources/Reachability/Netlink/Socket.swift", "import CLibnl", true),
            ("Sources/Reachability/NetlinkSocket.swift", "import CLibnl", false),
            ("Sources/Reachability/Path/Route.swift", "import CLinux", false),
            ("Sources/Reachability/Verdict/Verdict.swift", "internal import Glibc", false),
            ("Sources/Reachability/Interfaces/Classifier.swift", "import CLinux", false),
            ("Sources/Reachability/Interfaces/InterfaceEvidenceReader.swift", "import CLinux", true),
            ("Sources/Pacing/Backoff.swift", "@preconcurrency import Glibc", false),
            ("Sources/Records/Encoding/Record.swift", "import Dispatch", false),
            ("Sources/Records/Encoding/Record.swift", "import FoundationEssentials", true),
            ("Sources/netwatch/Commands/Watch.swift", "import Glibc", true),
            ("Sources/netwatch/Commands/Watch.swift", "import Foundation", false),
            ("Sources/netwatch/Commands/Get.swift", "import HTTPSession", false),
            ("Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSession", true),
            ("Sources/netwatch-transfer/Commands/Get.swift", "import Foundation", false),
            ("Sources/HTTPSession/Response/JSONValue.swift", "import Foundation", false),
            ("Sources/HTTPSessionFoundation/XMLScreening.swift", "import FoundationXML", true),
            ("Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSessionFoundation", false),
            ("Sources/netwatch-transfer/Output/Words.swift", "import Glibc", false),
            ("Sources/HTTPSessionJournal/Store/Journal.swift", "internal import GRDB", true),
            ("Sources/HTTPSessionJournal/Coordinator/TaskCoordinator.swift", "internal import GRDB", false),
            ("Sources/HTTPSessionJournal/Life/TaskLifecycle.swift", "internal import HTTPSession", true),
            ("Sources/HTTPSessionJournal/Life/TaskLifecycle.swift", "internal import Glibc", false),
            ("Sources/netwatch-transfer/Commands/Get.swift", "import HTTPSessionJournal", false),
            ("Sources/Console/Text/Words.swift", "import Glibc", false),
            ("Sources/Console/Process/Streams.swift", "import Foundation", false),
            ("Sources/Reachability/PathMonitor.swift", "public import struct Foundation.Data", false),
            ("Sources/Reachability/PathMonitor.swift", "import FoundationNetworking // for a while", false),
            ("Sources/Reachability/PathMonitor.swift", "// import Foundation", true),
            ("Sources/Reachability/PathMonitor.swift", "let words = \"we import Foundation\"", true),
            ("Tests/KernelTests/LinkTests.swift", "import Foundation", true),
        ])
    func walls(_ path: String, _ line: String, _ allowed: Bool) {
        #expect(Rules.importWalls(SourceFile(path, "\n\(line)\n")).map(\.line) == (allowed ? [] : [2]))
    }

    @Test(
        "pure code does not read the clock or files",
        arguments: [
            ("Sources/Pacing/Backoff.swift", "let now = Date()", false),
            ("Sources/Pacing/Backoff.swift", "let now = ContinuousClock.now", false),
            ("Sources/Pacing/Backoff.swift", "// never Date()", true),
            ("Sources/Reachability/Path/Route.swift", "FileManager.default.contents(atPath: path)", false),
            ("Sources/Reachability/Monitor/Loop.swift", "let now = ContinuousClock.now", true),
        ])
    func purity(_ path: String, _ line: String, _ allowed: Bool) {
        #expect(Rules.pureFolders(SourceFile(path, line)).isEmpty == allowed)
    }

    @Test("unfinished work needs the number of its issue", arguments: ["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    func unfinished(_ mark: String) {
        #expect(
            Rules.unfinishedWork(SourceFile("docs/a.md", "fine\n\(mark): later")).map(\.description).first?.hasPrefix(
                "docs/a.md:2: ") == true)
        #expect(Rules.unfinishedWork(SourceFile("docs/a.md", "\(mark) (#12): later")).isEmpty)
        #expect(Rules.unfinishedWork(SourceFile("docs/a.md", "\(mark)List and mktemp /tmp/a.\(mark)\(mark)")).isEmpty)
    }

    @Test("a file has at most 400 lines")
    func length() {
        let line = "let a = 1\n"
        #expect(Rules.length(SourceFile("Sources/Pacing/A.swift", String(repeating: line, count: 400))).isEmpty)
        #expect(Rules.length(SourceFile("Sources/Pacing/A.swift", String(repeating: line, count: 401))).count == 1)
    }

    @Test("switching off a check of the compiler needs a reason")
    func reasons() {
        let line = "final class Loop: @unchecked Sendable {"
        #expect(Rules.reasons(SourceFile("Sources/EventLoop/A.swift", "import Glibc\n\(line)")).map(\.line) == [2])
        #expect(Rules.reasons(SourceFile("Sources/EventLoop/A.swift", "// Only its thread touches it.\n\(line)")).isEmpty)
        #expect(
            Rules.reasons(SourceFile("Sources/EventLoop/A.swift", "nonisolated(unsafe) var a = 1  // under the lock")).isEmpty)
        let two = "@exclusivity(unchecked) var a = 1\n@exclusivity(unchecked) var b = 1"
        #expect(Rules.reasons(SourceFile("Sources/EventLoop/A.swift", two)).map(\.line) == [1, 2])
        #expect(Rules.reasons(SourceFile("Sources/EventLoop/A.swift", "// Both return at once.\n\(two)")).isEmpty)
    }

    @Test("fatalError is refused, preconditionFailure is allowed")
    func crashes() {
        #expect(Rules.crashes(SourceFile("Sources/Pacing/A.swift", "default: fatalError(\"no\")")).count == 1)
        #expect(Rules.crashes(SourceFile("Sources/Pacing/A.swift", "default: preconditionFailure(\"\\(state)\")")).isEmpty)
    }

    @Test("only NetworkLab's traits may skip a test")
    func skips() {
        for line in ["@Suite(.enabled(if: isRoot)) struct A {}", "@Test(.disabled(if: true, \"no\")) func a()", ".disabled()"] {
            #expect(Rules.skips(SourceFile("Tests/KernelTests/A.swift", line)).count == 1)
            #expect(Rules.skips(SourceFile("Tests/NetworkLab/Availability.swift", line)).isEmpty)
        }
        #expect(Rules.skips(SourceFile("Tests/KernelTests/A.swift", "@Suite(.requiresNamespaces) struct A {}")).isEmpty)
    }

    @Test("a file name like Helpers or Utils is refused")
    func names() {
        #expect(Rules.names(SourceFile("Sources/Reachability/Helpers/Parse.swift", "")).count == 1)
        #expect(Rules.names(SourceFile("Sources/Reachability/String+Utils.swift", "")).count == 1)
        #expect(Rules.names(SourceFile("Sources/Reachability/Route.swift", "")).isEmpty)
    }

    @Test("swift-format demands documentation of public declarations")
    func documentation() throws {
        let format = Process()
        format.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        let configuration = URL(fileURLWithPath: #filePath + "/../../../.swift-format").standardized.path
        format.arguments = ["swift", "format", "lint", "--strict", "--configuration", configuration]
        let (input, output) = (Pipe(), Pipe())
        (format.standardInput, format.standardError) = (input, output)
        try format.run()
        input.fileHandleForWriting.write(Data("public struct Path {}\n\n/// Known.\npublic struct Route {}\n".utf8))
        try input.fileHandleForWriting.close()
        let words = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        format.waitUntilExit()
        #expect(words.contains("AllPublicDeclarationsHaveDocumentation") && words.contains("'Path'"))
        #expect(!words.contains("'Route'"))
        #expect(format.terminationStatus != 0)
    }

    @Test("a path of one machine is refused")
    func paths() {
        let file = SourceFile("docs/a.md", "see /wor" + "k/facts.md\nsee net/work/facts, .build/work/a\nin \"/roo" + "t/.cache\"")
        #expect(Rules.foreignPaths(file).map(\.line) == [1, 3])
    }

    @Test("a closure as the value of a lock is refused")
    func lockedClosures() {
        let (lock, closure) = ("Locked<", "(@Sendable () -> Void)?>")
        let file = SourceFile("Sources/A/B.swift", "a = \(lock)\(closure)(nil)\nb = \(lock)Int>(0)\n// \(lock)\(closure)")
        #expect(Rules.lockedClosures(file).map(\.line) == [1])
    }

    @Test("an array of uninitialized capacity needs a test for a count above 0")
    func emptyStorage() {
        let array = "let a = [UInt8](unsafeUninitializedCapacity: count) { _, _ in }"
        #expect(Rules.emptyStorage(SourceFile("Sources/A/B.swift", "var x = 1\n\(array)")).map(\.line) == [2])
        #expect(Rules.emptyStorage(SourceFile("Sources/A/B.swift", "guard count > 0 else { return [] }\n\(array)")).isEmpty)
        #expect(Rules.emptyStorage(SourceFile("Sources/A/B.swift", "String(unsafeUninitializedCapacity: 24) { _ in 0 }")).isEmpty)
    }
}

struct FolderOrderTests {
    private let order = FolderOrder(
        SourceFile(
            FolderOrder.document,
            """
            # Architecture
            Elsewhere: Bottom Top
            ## Folders, from the top
            ```
            House: Top Bottom
            ```
            ## Next
            House: Bottom Top
            """))
    private let top = SourceFile("Sources/House/Top/Roof.swift", "struct Roof { let wall: Wall; enum Kind {} }")

    private func findings(_ text: String, in path: String = "Sources/House/Bottom/Wall.swift") -> [String] {
        order.findings([top, SourceFile(path, text)]).map(\.description)
    }

    @Test("the order of folders is read from its section of the document")
    func reading() { #expect(order.folders == ["House": ["Top", "Bottom"]]) }

    @Test("a file names types of its folder and of folders further down")
    func names() {
        #expect(findings("struct Wall {}").isEmpty)
        #expect(
            findings("struct Wall {\n  var roof: Roof?\n  var another: Roof?\n}")
                == ["Sources/House/Bottom/Wall.swift:2: Bottom names Roof of Top, which stands above it"])
        #expect(findings("extension Roof { func wall() {} }").count == 1)
        #expect(findings("let text = \"a \\(Roof.self) is here\"").count == 1)
    }

    @Test("comments, string literals, members and nested types of the same name are no uses of a type")
    func others() {
        #expect(findings("// Roof\n/* Roof\nRoof */ let a = 1").isEmpty)
        #expect(findings("let a = \"Roof \\\" Roof\"\nlet b = \"\"\"\n  Roof \"Roof\"\n  \"\"\"").isEmpty)
        #expect(findings("let a = Wall.Roof(1)").isEmpty)
        #expect(findings("struct Wall { struct Roof {}; let roof: Roof }").isEmpty)
        #expect(findings("let a = \"\\(f(\"(\"))\"\nlet b = Roof()").count == 1)
    }

    @Test("every folder has one place in the order")
    func places() {
        #expect(
            findings("struct Wall {}", in: "Sources/House/Cellar/Wall.swift") == [
                "docs/architecture.md:1: House/Cellar has no place in the order of folders",
                "docs/architecture.md:1: House/Bottom is in the order of folders, and does not exist",
            ])
    }
}
