import Foundation
import Testing

/// Checks that the public interface changes only on purpose: `make interface` writes docs/interface.txt, and a review sees the
/// difference.
@Suite(.timeLimit(.minutes(5))) struct PublicInterfaceTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `docs/interface.txt has the present interface of all library products`() throws {
        let manifest = try SourceFile(
            "Package.swift", String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8))
        let products = PublicInterface.products(manifest)
        try #require(products.contains("Reachability") && products.contains("HTTPSession"))
        let graphs = FileManager.default.temporaryDirectory.appending(path: "netwatch-interface-\(getpid())")
        defer { try? FileManager.default.removeItem(at: graphs) }
        try Self.writeSymbolGraphs(of: products, to: graphs)
        let present = try PublicInterface(graphs: graphs).lines
        let document = Self.root.appending(path: PublicInterface.document)
        if ProcessInfo.processInfo.environment["NETWATCH_INTERFACE"] == "write" {
            try Data((present.joined(separator: "\n") + "\n").utf8).write(to: document)
        }
        let written = try String(contentsOf: document, encoding: .utf8).split(separator: "\n").map(String.init)
        for line in Set(present).subtracting(written).sorted() { print("\(PublicInterface.document): + \(line)") }
        for line in Set(written).subtracting(present).sorted() { print("\(PublicInterface.document): - \(line)") }
        let isPresent = written == present
        #expect(
            isPresent,
            "the public interface is another than docs/interface.txt says: see the lines above, and run `make interface`")
    }

    @Test func `a symbol graph gives a line for each symbol and for the conformances of each type`() throws {
        let graphs = FileManager.default.temporaryDirectory.appending(path: "netwatch-interface-sample-\(getpid())")
        defer { try? FileManager.default.removeItem(at: graphs) }
        try FileManager.default.createDirectory(at: graphs, withIntermediateDirectories: true)
        let sample = """
            {"symbols": [
              {"identifier": {"precise": "a"}, "pathComponents": ["A"], "declarationFragments": [{"spelling": "struct"}, {"spelling": " A"}]},
              {"identifier": {"precise": "b"}, "pathComponents": ["A", "b()"], "declarationFragments": [{"spelling": "func b(\\n  )"}]}
            ], "relationships": [
              {"kind": "conformsTo", "source": "a", "target": "s:SH", "targetFallback": "Swift.Hashable"},
              {"kind": "conformsTo", "source": "a", "target": "s:s8CopyableP", "targetFallback": "Swift.Copyable"},
              {"kind": "conformsTo", "source": "a", "target": "s:10Foundation", "targetFallback": "Foundation.LocalizedError"},
              {"kind": "memberOf", "source": "b", "target": "a"}
            ]}
            """
        try Data(sample.utf8).write(to: graphs.appending(path: "P@Swift.symbols.json"))
        #expect(
            try PublicInterface(graphs: graphs).lines == [
                "P A : Hashable, LocalizedError", "P A | struct A", "P A.b() | func b( )",
            ])
    }

    @Test func `a conformance that a product adds to another module's type has a line`() throws {
        let graphs = FileManager.default.temporaryDirectory.appending(path: "netwatch-interface-extension-\(getpid())")
        defer { try? FileManager.default.removeItem(at: graphs) }
        try FileManager.default.createDirectory(at: graphs, withIntermediateDirectories: true)
        let sample = """
            {"symbols": [], "relationships": [
              {"kind": "conformsTo", "source": "s:Sq", "target": "s:11HTTPSession13EmptyResponseP"},
              {"kind": "conformsTo", "source": "s:Sq", "target": "s:s8CopyableP", "targetFallback": "Swift.Copyable"},
              {"kind": "conformsTo", "source": "s:20FoundationEssentials11JSONDecoderC", "target": "s:11HTTPSession11DataDecoderP"},
              {"kind": "conformsTo", "source": "s:11HTTPSession0A5ErrorV", "target": "s:10Foundation13CustomNSErrorP",
               "targetFallback": "Foundation.CustomNSError"},
              {"kind": "conformsTo", "source": "s:1P1AV1BV", "target": "s:SH", "targetFallback": "Swift.Hashable"},
              {"kind": "conformsTo", "source": "c:objc(cs)Other", "target": "s:SH", "targetFallback": "Swift.Hashable"}
            ]}
            """
        try Data(sample.utf8).write(to: graphs.appending(path: "P@Swift.symbols.json"))
        #expect(
            try PublicInterface(graphs: graphs).lines == [
                "P A.B : Hashable", "P HTTPSessionError : CustomNSError", "P JSONDecoder : DataDecoder",
                "P Optional : EmptyResponse", "P c:objc(cs)Other : Hashable",
            ])
    }

    private static func writeSymbolGraphs(of products: [String], to folder: URL) throws {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let modules = URL(fileURLWithPath: bundle).deletingLastPathComponent().appending(path: "Modules")
        let process = Process()
        process.executableURL = root.appending(path: "scripts/symbol-graphs")
        process.arguments = [folder.path, modules.path] + products
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }
}
